/**
 * Milliseconds of processor time since a moment, or since the process began, all threads of this process together. On a shared machine the clock on
 * the wall mostly tells what others do. (`threadCpuUsage` would leave out the helpers of the garbage collector, but
 * Linux brings it up to date only every 4 ms.)
 */
export function processorTime(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1_000
}
