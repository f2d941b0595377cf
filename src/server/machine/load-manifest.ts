import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { type ProjectManifest, projectManifest } from '../../contract/project-manifest.ts'
import { WorkerPool } from '../../worker/pool/pool.ts'
import type { LocalComponents } from '../components.ts'
import { workerCommand } from './worker-command.ts'

/** Loads a project once, in a process of its own, to list its declarations. */
export async function loadManifest(
  projectDir: string,
  { dataDir, clock }: LocalComponents,
): Promise<{ ok: true; manifest: ProjectManifest } | { ok: false; problems: readonly ProjectProblem[] }> {
  const pool = new WorkerPool({ command: workerCommand(projectDir, dataDir), size: 1, warm: 1, now: () => clock.now() })
  try {
    const loaded = await pool.ready()
    if (loaded.type === 'load_failed') return { ok: false, problems: loaded.problems }
    return { ok: true, manifest: projectManifest.parse(loaded.manifest) }
  } finally {
    await pool.close({ graceMs: 0 })
  }
}
