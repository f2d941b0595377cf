import { defineConfig } from 'vitest/config'

/** Tests that start processes of their own, and kill them: these get a process each. */
const spawning = ['test/e2e/**/*.test.ts', 'test/crash/**/*.test.ts']

export default defineConfig({
  test: {
    // A property test of a few hundred cases on two shared cores can take ten seconds; a hang should not take a minute.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    passWithNoTests: true,
    allowOnly: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: spawning,
          // Our modules keep no state between tests, so files may share a thread: 8 times faster on two cores.
          pool: 'threads',
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'process',
          include: spawning,
          pool: 'forks',
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
