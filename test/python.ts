import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

const folder = path.resolve(import.meta.dirname, '../.tools/python')
const python = path.join(folder, 'bin', 'python')

/**
 * A Python that has dagster-pipes and duckdb, or undefined with the reason on the screen. It is installed once, where the tools of the
 * repository are.
 */
export function pythonWithPackages(untested: string): string | undefined {
  if (fs.existsSync(python)) return python
  const making = `${folder}-${process.pid}`
  try {
    execFileSync('python3', ['-m', 'venv', making], { stdio: 'pipe' })
    const own = path.join(making, 'bin', 'python')
    execFileSync(own, ['-m', 'pip', 'install', '--quiet', 'dagster-pipes', 'duckdb'], { stdio: 'pipe' })
    moveThere(making)
    return python
  } catch (error) {
    if (process.env['SERVO_REQUIRE_ALL'] === '1') throw error
    console.warn(`${untested}: ${(error as Error).message.split('\n')[0]}`)
    return undefined
  } finally {
    fs.rmSync(making, { recursive: true, force: true })
  }
}

/** Another test file may have been faster. */
function moveThere(making: string): void {
  try {
    fs.renameSync(making, folder)
  } catch (error) {
    if (!fs.existsSync(python)) throw error
  }
}
