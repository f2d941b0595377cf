import { defineConfig, inProcess, local } from 'servo-flow'

export default defineConfig({
  project: 'shop',
  dirs: ['./assets'],
  environments: { dev: { storage: local('.servo'), queue: inProcess({ concurrency: 4 }) } },
  pools: { warehouse: 2 },
})
