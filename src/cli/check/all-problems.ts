import type { ProjectProblem } from '../../contract/project-manifest.ts'

/** What TypeScript says of every import and export of a file that Node takes for a script. */
const FOLLOWS = /\(TS(1287|1295)\)$/

/**
 * The problems of a project by place. If its files are no modules, that comes first, without the errors of the compiler that follow
 * from it: one change to package.json removes them all.
 */
export function allProblems(types: readonly ProjectProblem[], project: readonly ProjectProblem[]): ProjectProblem[] {
  const first = project.filter(({ code }) => code === 'not_a_module')
  const others = project.filter(({ code }) => code !== 'not_a_module')
  const own = first.length === 0 ? types : types.filter(({ message }) => !FOLLOWS.test(message))
  return [...first, ...[...own, ...others].sort(byPlace)]
}

function byPlace(one: ProjectProblem, other: ProjectProblem): number {
  const place = ({ file, line, column }: ProjectProblem): string =>
    `${file ?? ''}:${String(line ?? 0).padStart(6, '0')}:${String(column ?? 0).padStart(6, '0')}`
  return place(one) < place(other) ? -1 : place(one) > place(other) ? 1 : 0
}
