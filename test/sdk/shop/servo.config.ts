import { defineConfig, inProcess, local } from 'servo-flow'

export default defineConfig({
  project: 'shop',
  dirs: ['./assets'], // every exported definition is picked up
  environments: {
    dev: { storage: local('.servo'), queue: inProcess({ concurrency: 8 }) },
  },
  pools: { warehouse: 4, 'shop-api': 2 }, // named concurrency limits
})
