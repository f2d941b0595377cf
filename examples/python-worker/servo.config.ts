import { defineConfig } from 'servo-flow'

export default defineConfig({ project: 'python-worker', dirs: ['./assets'] })
