// Reads JSON Schemas for forms: the control for a schema, its initial value, and the labels of its parts. A
// schema without a suitable control is edited as JSON.

export type Schema = Readonly<Record<string, unknown>>;

export interface Choice {
  readonly value: unknown;
  readonly label: string;
}

export type Control =
  | { readonly kind: 'text'; readonly format: string; readonly isLong: boolean }
  | { readonly kind: 'number'; readonly isWhole: boolean }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'choice'; readonly choices: readonly Choice[] }
  | { readonly kind: 'choices'; readonly choices: readonly Choice[] }
  | { readonly kind: 'list'; readonly items: Schema }
  | { readonly kind: 'object'; readonly properties: readonly (readonly [string, Schema])[] }
  | { readonly kind: 'json' };

/** Texts that may be longer than this get a multi-line field. */
const LONG_TEXT = 200;
/** References and nested objects below this depth are edited as JSON. */
export const DEEPEST = 6;
/** In the place of a default that is a secret. */
const HIDDEN = '***';

export function controlOf(schema: Schema): Control {
  const choices = choicesOf(schema);
  if (choices !== undefined) return { kind: 'choice', choices };
  const type = typeOf(schema);
  if (type === 'boolean') return { kind: 'boolean' };
  if (type === 'number' || type === 'integer') return { kind: 'number', isWhole: type === 'integer' };
  if (type === 'string') {
    const isLong = (numberOf(schema, 'maxLength') ?? 0) > LONG_TEXT;
    return { kind: 'text', format: textOf(schema, 'format') ?? '', isLong };
  }
  if (type === 'array') {
    const items = objectOf(schema.items);
    const several = items && choicesOf(items);
    if (several !== undefined) return { kind: 'choices', choices: several };
    return items === undefined ? { kind: 'json' } : { kind: 'list', items };
  }
  const properties = Object.entries(objectOf(schema.properties) ?? {});
  if (type === 'object' && properties.length > 0) {
    return { kind: 'object', properties: properties.map(([name, part]) => [name, objectOf(part) ?? {}]) };
  }
  return { kind: 'json' };
}

/** The most fields. More would block the page: a server may send a schema that contains itself many times. */
const MAX_FIELDS = 500;

/** The schema of a form; without its parts when they have too many fields, so that it is edited as JSON. */
export function formSchema(schema: Schema): Schema {
  return fieldsIn(schema, schema, MAX_FIELDS) > MAX_FIELDS ? {} : schema;
}

/** Number of fields of the initial form; counts up to `most` and a few more. */
function fieldsIn(schema: Schema, root: Schema, most: number, depth = 0): number {
  const control = controlOf(resolved(schema, root));
  if (control.kind !== 'object' || depth > DEEPEST) return 1;
  let count = 0;
  for (const [, part] of control.properties) {
    count += fieldsIn(part, root, most - count, depth + 1);
    if (count > most) break;
  }
  return count;
}

/** Replaces a reference into the same document by its target, and alternatives by the first one. */
export function resolved(schema: Schema, root: Schema, depth = 0): Schema {
  if (depth > DEEPEST) return {};
  const { $ref, allOf, anyOf, oneOf, ...own } = schema;
  if (typeof $ref === 'string') return resolved({ ...targetOf($ref, root), ...own }, root, depth + 1);
  if (Array.isArray(allOf) && allOf.length === 1) {
    return resolved({ ...objectOf(allOf[0]), ...own }, root, depth + 1);
  }
  const forms = alternatives(anyOf ?? oneOf).filter((form) => form.type !== 'null');
  const [form] = forms;
  if (form === undefined || choicesOf(schema) !== undefined) return schema;
  return forms.length === 1 ? resolved({ ...form, ...own }, root, depth + 1) : own;
}

/** The initial value of a form: the default, or nothing. */
export function initialValue(schema: Schema, root: Schema = schema, depth = 0): unknown {
  const known = resolved(schema, root);
  if ('default' in known && !hasHiddenDefault(known)) return known.default;
  if ('const' in known) return known.const;
  const control = controlOf(known);
  if (control.kind !== 'object' || depth > DEEPEST) return undefined;
  const entries = control.properties.map(([name, part]) => {
    const rules = resolved(part, root);
    const isNeeded = isRequired(known, name) && !hasHiddenDefault(rules);
    const empty = isNeeded ? emptyValue(controlOf(rules)) : undefined;
    return [name, initialValue(part, root, depth + 1) ?? empty] as const;
  });
  const set = entries.filter(([, value]) => value !== undefined);
  return set.length === 0 && depth > 0 ? undefined : Object.fromEntries(set);
}

/** Whether only the gateway has the default: one such as `${SCRATCH}`, or a secret. The field stays empty, and the gateway uses it. */
export function hasHiddenDefault({ default: value = null }: Schema): boolean {
  return value === HIDDEN || JSON.stringify(value).includes('${');
}

/** The value of an empty required field, if an empty value is valid. */
export function emptyValue({ kind }: Control): unknown {
  if (kind === 'list' || kind === 'choices') return [];
  if (kind === 'object') return {};
  return kind === 'boolean' ? false : undefined;
}

export function isRequired(schema: Schema, name: string): boolean {
  return Array.isArray(schema.required) && schema.required.includes(name);
}

export function titleOf(schema: Schema, name: string): string {
  return typeof schema.title === 'string' && schema.title !== '' ? schema.title : name;
}

export function textOf(schema: Schema, field: string): string | undefined {
  const value = schema[field];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function numberOf(schema: Schema, field: string): number | undefined {
  const value = schema[field];
  return typeof value === 'number' ? value : undefined;
}

function choicesOf(schema: Schema): readonly Choice[] | undefined {
  if (Array.isArray(schema.enum)) {
    const { enumNames } = schema;
    return schema.enum.map((value, index) => ({
      value,
      label: labelOf((Array.isArray(enumNames) ? enumNames[index] : undefined) ?? value),
    }));
  }
  const forms = alternatives(schema.oneOf ?? schema.anyOf);
  if (forms.length === 0 || !forms.every((form) => 'const' in form)) return undefined;
  return forms.map((form) => ({ value: form.const, label: titleOf(form, labelOf(form.const)) }));
}

/** A value of a server, which may be anything, as a text: for some objects `String` throws. */
export function labelOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The only type besides null; undefined for several. A schema with properties is an object. */
function typeOf({ type, properties }: Schema): unknown {
  const types = (Array.isArray(type) ? type : [type]).filter((each) => each !== 'null');
  if (types.length !== 1) return undefined;
  return types[0] ?? (properties === undefined ? undefined : 'object');
}

function targetOf(reference: string, root: Schema): Schema {
  if (!reference.startsWith('#')) return {};
  let target: unknown = root;
  for (const part of reference.slice(1).split('/').filter(Boolean)) {
    target = Object(target)[decoded(part).replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return objectOf(target) ?? {};
}

/** The text without the escapes of a URI; the text itself if a server wrote them wrong. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function alternatives(value: unknown): readonly Schema[] {
  return Array.isArray(value) ? value.map((form) => objectOf(form) ?? {}) : [];
}

function objectOf(value: unknown): Schema | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}
