/** Exists only in types. */
declare const because: unique symbol

/**
 * The type of something that no value fits. The compiler prints `Why` when an author passes one: it is a text, because of an object the
 * compiler would say which property is missing.
 */
export type Mistake<Why extends string> = Why & { readonly [because]: never }
