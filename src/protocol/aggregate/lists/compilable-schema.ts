// Tells whether validators of JSON Schema compile a schema, without compiling it. Strict where validators differ: it
// accepts only what all of them accept. The validator of the official SDK 1 (ajv, draft 7) is the strictest one.
// Source: ADR 116.

import { isJsonObject, type JsonObject, JsonText } from '../../../domain/json/json.ts';
import { wordsIn } from '../../../domain/text.ts';

/** True for a schema that compiles. It must not be nested deeper than LIMITS.nestingDepth. */
export function compiles(root: JsonObject): boolean {
  return new SchemaCheck(root).isValid();
}

/**
 * True when a reference of the schema names a part that the schema does not have. References to other documents
 * are not followed.
 */
export function refersNowhere(root: JsonObject): boolean {
  const anchors = new Set<unknown>();
  const references: string[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) visit(each);
    if (!isJsonObject(value)) return;
    anchors.add(value.$anchor);
    if (typeof value.$ref === 'string' && value.$ref.startsWith('#')) references.push(value.$ref);
    for (const [keyword, operand] of Object.entries(value)) if (!DATA.has(keyword)) visit(operand);
  };
  visit(root);
  const isThere = (reference: string) =>
    reference === '#' ||
    (reference.startsWith('#/') ? partAt(root, reference) !== undefined : anchors.has(reference.slice(1)));
  return !references.every(isThere);
}

/** Keywords whose operands are not schemas. */
const DATA: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'example', 'examples']);

type Check = (value: unknown) => boolean;

/** Characters of all patterns of a schema that are tried. A property (`\p{L}`) counts as 100 more: its set takes V8 80 µs. */
const [MAX_PATTERNS, PROPERTY, PROPERTY_COST] = [16_384, /\\p\{/gi, 100];

/** Levels of a schema, with the parts that its references name: validators compile one within the other. */
const MAX_LEVELS = 256;
/** Objects and lists of a schema, with those that validators compile again at each reference. 5,000 take ajv a second. */
const MAX_PARTS = 2_000;
/** The most schemas by which validators check one value: two references to the next of 30 levels are a billion. */
const MAX_CHECKS = 2_000;

class SchemaCheck {
  readonly #root: JsonObject;
  readonly #visited = new Set<object>();
  readonly #anchors = new Map<string, JsonObject>();
  readonly #references: string[] = [];
  /** The references known to end at a schema that has no reference of its own. */
  readonly #ending = new Set<string>();
  readonly #withReferences = new Map<object, boolean>();
  readonly #measured = new Set<object>();
  readonly #checks = new Map<object, number>();
  #parts = 0;
  readonly #keywords: Readonly<Record<string, Check>>;
  #patternsLeft = MAX_PATTERNS;

  constructor(root: JsonObject) {
    this.#root = root;
    const isPattern: Check = (value) => this.#isPattern(value);
    const schema: Check = (value) => this.#isSchema(value);
    const schemas = listOf(schema);
    const bySchema = fieldsOf(schema);
    this.#keywords = {
      ...KEYWORDS,
      $ref: (value) => typeof value === 'string' && this.#references.push(value) > 0,
      $defs: bySchema,
      definitions: bySchema,
      properties: bySchema,
      patternProperties: (value) => bySchema(value) && Object.keys(Object(value)).every(isPattern),
      pattern: isPattern,
      dependentSchemas: bySchema,
      dependencies: fieldsOf((value) => texts(value) || schema(value)),
      allOf: schemas,
      anyOf: schemas,
      oneOf: schemas,
      prefixItems: schemas,
      items: (value) => schemas(value) || schema(value),
    };
    for (const keyword of WITH_SCHEMA) Object.assign(this.#keywords, { [keyword]: schema });
  }

  isValid(): boolean {
    if (!this.#isSchema(this.#root)) return false;
    // A reference may lead to a place that is not a schema otherwise, and has references of its own.
    for (const reference of this.#references) if (!this.#isResolvable(reference)) return false;
    if (!this.#references.every((reference) => this.#ends(reference)) || !this.#isSmall(this.#root, 1))
      return false;
    return [...this.#visited].every((schema) => this.#checksOf(schema) <= MAX_CHECKS);
  }

  /** The number of schemas by which a value of this schema is checked; infinite for one that checks it by itself again. */
  #checksOf(schema: unknown): number {
    if (!isJsonObject(schema)) return 1;
    const known = this.#checks.get(schema);
    if (known !== undefined) return known;
    this.#checks.set(schema, Number.POSITIVE_INFINITY); // while it is counted
    const { $ref: reference } = schema;
    const inner = [
      ...(typeof reference === 'string' ? [this.#targetOf(reference)] : []),
      ...IN_PLACE.flatMap((keyword) => schema[keyword] ?? []),
      ...BY_FIELD.flatMap((keyword) => Object.values(Object(schema[keyword]))),
    ];
    const checks = inner.reduce((sum: number, each) => sum + this.#checksOf(each), 1);
    this.#checks.set(schema, checks);
    return checks;
  }

  /** False for a reference that leads back to itself by references alone. */
  #ends(reference: string): boolean {
    const passed = new Set<string>();
    for (let next = reference; !this.#ending.has(next); ) {
      if (passed.size === passed.add(next).size) return false;
      const further = this.#targetOf(next)?.$ref;
      if (typeof further !== 'string') break;
      next = further;
    }
    for (const each of passed) this.#ending.add(each);
    return true;
  }

  /** Counts as ajv compiles: a part without references at each reference to it, another one once. */
  #isSmall(part: object, level: number): boolean {
    this.#parts += 1;
    if (this.#parts > MAX_PARTS || level > MAX_LEVELS) return false;
    const reference: unknown = Reflect.get(part, '$ref');
    const target = typeof reference === 'string' ? this.#targetOf(reference) : undefined;
    const isCounted =
      target !== undefined &&
      (!this.#hasReference(target) || this.#measured.size < this.#measured.add(target).size);
    const inner = [...Object.values(part), ...(isCounted ? [target] : [])];
    return inner.every((each) => !isPart(each) || this.#isSmall(each, level + 1));
  }

  #hasReference(part: object): boolean {
    const known = this.#withReferences.get(part);
    if (known !== undefined) return known;
    const has =
      '$ref' in part || Object.values(part).some((each) => isPart(each) && this.#hasReference(each));
    this.#withReferences.set(part, has);
    return has;
  }

  #isSchema(value: unknown): boolean {
    if (typeof value === 'boolean') return true;
    if (!isJsonObject(value)) return false;
    if (this.#visited.has(value)) return true;
    this.#visited.add(value);
    if (value.$id !== undefined && value !== this.#root) return false; // it may be that of another tool
    if (value.nullable !== undefined && value.type === undefined) return false;
    const anchors = [value.$anchor, value.$dynamicAnchor].filter((anchor) => anchor !== undefined);
    if (!anchors.every((anchor) => this.#addAnchor(anchor, value))) return false;
    return Object.entries(value).every(([keyword, operand]) => {
      const check = Object.hasOwn(this.#keywords, keyword) ? this.#keywords[keyword] : undefined;
      return check === undefined ? !hasIdentifiers(operand) : check(operand);
    });
  }

  #isPattern(source: unknown): boolean {
    if (typeof source !== 'string') return false;
    const properties = source.length > MAX_PATTERNS ? [] : (source.match(PROPERTY) ?? []);
    this.#patternsLeft -= source.length + properties.length * PROPERTY_COST;
    if (this.#patternsLeft < 0) return false;
    try {
      new RegExp(source, 'u');
      return true;
    } catch {
      return false;
    }
  }

  #addAnchor(anchor: unknown, schema: JsonObject): boolean {
    if (typeof anchor !== 'string' || !/^[A-Za-z_][-A-Za-z0-9._]*$/.test(anchor)) return false;
    return this.#anchors.size < this.#anchors.set(anchor, schema).size;
  }

  #isResolvable(reference: string): boolean {
    const own = this.#ownOf(reference);
    if (own === '' || own === '#' || DRAFT_7.test(own)) return true;
    if (!own.startsWith('#/')) return own.startsWith('#') && this.#anchors.has(own.slice(1));
    return this.#isSchema(partAt(this.#root, own));
  }

  /** The object that a reference names within the schema. */
  #targetOf(reference: string): JsonObject | undefined {
    const own = this.#ownOf(reference);
    if (own === '' || own === '#') return this.#root;
    const target = own.startsWith('#/') ? partAt(this.#root, own) : this.#anchors.get(own.slice(1));
    return isJsonObject(target) ? target : undefined;
  }

  /** The reference without the identifier of the schema. */
  #ownOf(reference: string): string {
    const { $id } = this.#root;
    return typeof $id === 'string' && reference.startsWith($id) ? reference.slice($id.length) : reference;
  }
}

/** True for an object or a list; a number that is kept as text is neither. */
function isPart(value: unknown): value is object {
  return Array.isArray(value) || isJsonObject(value);
}

/** The part of a schema that a reference beginning with `#/` names; undefined when there is none. */
function partAt(root: JsonObject, reference: string): unknown {
  let found: unknown = root;
  for (const part of reference.slice(2).split('/')) {
    const key = fieldNamedBy(part);
    if (key === undefined || typeof found !== 'object' || found === null || !Object.hasOwn(found, key))
      return undefined;
    found = (found as Readonly<Record<string, unknown>>)[key];
  }
  return found;
}

/** The field that one part of a JSON pointer in a URI names. Source: RFC 6901 sections 4 and 6. */
function fieldNamedBy(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined; // no valid escape
  }
}

const DRAFT_7 = /^http:\/\/json-schema\.org\/draft-07\/schema#?$/;

/** True for a schema with identifiers, also in unknown keywords, where validators look for them. */
function hasIdentifiers(operand: unknown): boolean {
  if (!isJsonObject(operand)) return false;
  if ('$id' in operand || '$anchor' in operand || '$dynamicAnchor' in operand) return true;
  return Object.values(operand).some(hasIdentifiers);
}

function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

function fieldsOf(check: Check): Check {
  return (value) => isJsonObject(value) && Object.values(value).every(check);
}

const text: Check = (value) => typeof value === 'string';
const texts = listOf(text);
const flag: Check = (value) => typeof value === 'boolean';
const number: Check = (value) => Number.isFinite(value instanceof JsonText ? Number(value.text) : value);
const anything: Check = () => true;
const nothing: Check = () => false;

const TYPES: ReadonlySet<unknown> = new Set(wordsIn('array boolean integer null number object string'));
const isType: Check = (value) => TYPES.has(value);

/** Keywords with one schema. */
const WITH_SCHEMA = wordsIn(
  'additionalItems additionalProperties contains contentSchema else if not propertyNames',
  'then unevaluatedItems unevaluatedProperties',
);

/** Keywords whose schemas check the same value. */
const IN_PLACE = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'];
/** The same, with a schema for each field that a value may have. */
const BY_FIELD = ['dependentSchemas', 'dependencies'];

/** Keywords with other operands. */
const KEYWORDS: Readonly<Record<string, Check>> = {
  $anchor: anything, // checked with the schema that has it
  $async: nothing,
  $dynamicAnchor: anything,
  $id: (value) => typeof value === 'string' && URL.canParse(value) && !value.includes('#'),
  $schema: text,
  const: anything,
  default: anything,
  enum: (value) => Array.isArray(value) && value.length > 0,
  exclusiveMaximum: number,
  exclusiveMinimum: number,
  format: text,
  id: nothing, // draft 4
  maxContains: number,
  maximum: number,
  maxItems: number,
  maxLength: number,
  maxProperties: number,
  minContains: number,
  minimum: number,
  minItems: number,
  minLength: number,
  minProperties: number,
  multipleOf: number,
  nullable: flag,
  required: texts,
  type: (value) => isType(value) || listOf(isType)(value),
  uniqueItems: flag,
};
