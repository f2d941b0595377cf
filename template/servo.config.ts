import { defineConfig } from 'servo-flow'

export default defineConfig({
  project: 'my-project',
  dirs: ['assets'],
})
