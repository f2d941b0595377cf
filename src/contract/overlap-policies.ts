/** What a tick does while a run of an earlier one is unfinished. In a file of its own: commands need it without the schemas. */
export const overlapPolicies = ['queue', 'skip', 'replace'] as const
