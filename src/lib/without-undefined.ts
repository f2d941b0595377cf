type Defined<T> = { [Name in keyof T]: Exclude<T[Name], undefined> }

/** Without the members that are not there: JSON has no undefined. */
export function withoutUndefined<T extends object>(members: T): Defined<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>
}
