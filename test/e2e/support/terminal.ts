import { inject, onTestFinished } from 'vitest'
import { hasPython, PseudoTerminal } from './pseudo-terminal.ts'

/** Without python3 there is no terminal to play on; where everything is required, its tests fail instead. */
export const lacksTerminal: boolean = !hasPython() && process.env['SERVO_REQUIRE_ALL'] !== '1'
if (lacksTerminal) console.warn('What commands show on a terminal is not tested: python3 is missing.')

/** The command as a person sees it at a terminal. */
export class Terminal extends PseudoTerminal {
  constructor(args: readonly string[], cwd: string, env: Record<string, string> = {}) {
    super([process.execPath, inject('servoMain'), ...args], cwd, env)
    onTestFinished(() => this.kill())
  }
}
