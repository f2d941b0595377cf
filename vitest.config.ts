import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** Tests that start processes of their own, and kill them: they run in processes, not in threads. */
const spawning = ['test/e2e/**/*.test.ts', 'test/crash/**/*.test.ts', 'test/worker/**/*.test.ts']

export default defineConfig({
  test: {
    // A time-out is for hangs only. A property of some hundred cases takes ten seconds, on a shared machine a few times that.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    allowOnly: false,
    // Every test has a project of its own; what workers load in all of them is compiled once.
    env: {
      NODE_COMPILE_CACHE: join(tmpdir(), 'servo-compile-cache'),
      // Servers compare every answer with the schema of its route, those in processes of their own too.
      SERVO_CHECK_ANSWERS: '1',
    },
    // A fifth of the time tests wait for processes and disks: five at a time, also where there are only two cores.
    maxWorkers: Math.max(5, availableParallelism() - 1),
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
          // As above: a file that loads everything anew takes a second of processor time before its first test.
          isolate: false,
          globalSetup: 'test/built-package.ts',
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
    ],
  },
})
