// Loads one project after the other: node load-projects.ts <folder…>, and prints for each, as JSON, the lines that a user reads. Projects
// are usually loaded in a process each; the folders differ, so that no module of one is taken for that of another.

import picocolors from 'picocolors'
import { problemLines } from '../../../src/cli/show-problems.ts'
import { loadProject } from '../../../src/sdk/project/project.ts'

const plain = picocolors.createColors(false)
const shown: string[][] = []
for (const dir of process.argv.slice(2)) {
  const loaded = await loadProject(dir)
  shown.push('problems' in loaded ? problemLines(loaded.problems, plain) : ['loaded'])
}
process.stdout.write(JSON.stringify(shown))
