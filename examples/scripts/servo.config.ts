import { defineConfig } from 'servo-flow'

export default defineConfig({ project: 'scripts', dirs: ['./assets'] })
