// Reads what a gateway answered field by field: nothing is assumed about a gateway of another version.

/** An object of an answer. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object; an empty one when it is none. */
export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

/** The instance records of a registry answer, in its order. */
export function instancesOf(registry: unknown): readonly Fields[] {
  return Object.values(fields(fields(registry).templates)).flatMap((template) => {
    const { instances } = fields(template);
    return Array.isArray(instances) ? instances.map(fields) : [];
  });
}

/** The state of an instance in one word: `ejected` while it is healthy and gets no calls all the same. */
export function stateOf({ state, ejection }: Fields): string {
  return state === 'healthy' && isEjected({ ejection }) ? 'ejected' : String(state);
}

function isEjected({ ejection }: Fields): boolean {
  return typeof fields(ejection).reason === 'string';
}

/** Why an instance is not healthy, or gets no calls, to be used inside a sentence; empty when nothing is said. */
export function reasonOf({ reason, ejection }: Fields): string {
  const said = reason ?? fields(ejection).reason;
  return typeof said === 'string' ? said.replace(/\.$/, '') : '';
}
