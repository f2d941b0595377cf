/** A name as part of an environment variable: `apiToken` → `API_TOKEN`. */
export const variableName = (name: string): string =>
  name
    .replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_')
    .replace(/[^A-Za-z0-9]/g, '_')
    .toUpperCase()
