/** True for objects and arrays: the values that have members. */
export const isObject = (value: unknown): value is Record<PropertyKey, unknown> => typeof value === 'object' && value !== null
