// A process that belongs to a project: node check-process.ts <project folder> <time in ms>, started by `servo check`, which it tells what it
// found.

import { checkProject } from '../../sdk/check/project-check.ts'
import { loadProject } from '../../sdk/project/project.ts'
import { ProcessSecrets } from '../../worker/process/process-secrets.ts'

const [, , root = '.', now] = process.argv
const secrets = new ProcessSecrets()
const project = await loadProject(root, secrets.newest, (file) => {
  process.stderr.write(`${file} is still being imported: it, or a module it imports, waits for something\n`)
})
secrets.declare(('problems' in project ? project.declared : project)?.secretVariables ?? [])
const { problems, unchecked, counts } = await checkProject(project, { root, environment: process.env, nowMs: Number(now) })
const found = { problems: secrets.problems(problems), unchecked: unchecked.map(secrets.newest), counts }
// Whatever modules left running ends here.
process.send?.(found, () => process.exit())
