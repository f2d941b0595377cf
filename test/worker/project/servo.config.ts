import { defineConfig } from 'servo-flow'

export default defineConfig({ project: 'worker-test', dirs: ['assets'] })
