import { concurrencyFlag, portFlag } from '../flags.ts'
import { workUnread } from '../output.ts'
import { findProject, type ProjectFlags } from '../project.ts'
import { DEFAULT_PORT, serveProject } from '../serving/serve.ts'
import { jsonLines, screen } from '../show-dev.ts'

export interface DevFlags extends ProjectFlags {
  port?: string
  concurrency?: string
  run?: string[]
  /** False with --no-automation. */
  automation?: boolean
  host?: string
  trustedProxy?: string[]
}

/** Runs the server of the project on this machine until Ctrl-C, and loads the project again whenever its code is saved. */
export async function devCommand(flags: DevFlags): Promise<void> {
  workUnread()
  await serveProject({
    projectDir: findProject(flags),
    voice: flags.json ? jsonLines : screen,
    watch: true,
    automation: flags.automation !== false,
    ...concurrencyFlag(flags.concurrency),
    // The usual port if it is free, otherwise any other, so that two projects can run side by side.
    port: portFlag(flags.port) ?? [DEFAULT_PORT, 0],
    run: flags.run,
    host: flags.host,
    trustedProxies: flags.trustedProxy,
  })
}
