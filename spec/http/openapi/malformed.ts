// Generates requests that violate the API description. Each is checked against the schema that it violates, so none is
// valid by accident. The same seed gives the same requests.

import * as Schema from 'typebox/schema';
import type { Dice } from '../../helpers/dice.ts';

/** A request on the wire. */
export interface Malformed {
  /** What is wrong with it, for the message of a failed test. */
  readonly flaw: string;
  readonly method: string;
  /** The target of the request line. */
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

type Node = Readonly<Record<string, unknown>>;

/** The parts of a documented operation that the fuzzer needs. */
export interface Target {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: { readonly schema: Node; readonly example: unknown; readonly isForm: boolean } | undefined;
}

interface Parameter {
  readonly name: string;
  readonly location: string;
  readonly schema: Node;
  readonly example: string;
}

/** Every operation that can be malformed: it has a path parameter, a typed query or a body. */
export function targetsOf(document: Node): Target[] {
  return Object.entries(nodeOf(document.paths)).flatMap(([path, item]) =>
    Object.entries(nodeOf(item)).flatMap(([method, operation]) => {
      const { parameters = [], requestBody } = nodeOf(operation);
      const target = {
        method: method.toUpperCase(),
        path,
        parameters: (Array.isArray(parameters) ? parameters : []).map(parameterOf),
        body: requestBody === undefined ? undefined : bodyOf(nodeOf(requestBody)),
      };
      return target.parameters.some(isBreakable) || target.body !== undefined ? [target] : [];
    }),
  );
}

const FORM = 'application/x-www-form-urlencoded';

/** One malformed request for a target. `components` are those of the document. */
export function malformed(target: Target, components: unknown, dice: Dice): Malformed {
  const breakable = target.parameters.filter(isBreakable);
  const mutations: (() => Omit<Malformed, 'method'> | undefined)[] = [];
  if (breakable.length > 0)
    mutations.push(() => badParameter(target, dice.pick(breakable), components, dice));
  const { body } = target;
  if (body !== undefined) {
    const mutateValue = () => badBodyValue(target, body, components, dice);
    mutations.push(
      mutateValue,
      mutateValue,
      mutateValue,
      () => badBodyText(target, body, dice),
      () => badBodyHeaders(target, body, dice),
    );
  }
  if (body?.isForm === true) mutations.push(() => badForm(target, dice));
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    const made = dice.pick(mutations)();
    if (made !== undefined) return { method: target.method, ...made };
  }
  throw new Error(`nothing wrong could be made for ${target.method} ${target.path}`);
}

const JSON_TYPE: readonly (readonly [string, string])[] = [['Content-Type', 'application/json']];

/** Texts that are not valid names, encoded for a URL. */
const BAD_NAMES = [
  ...'%2F ..%2f..%2fetc%2fpasswd %00 a%00b %ed%a0%80 %ff%fe % %zz %C0%AF . %20 %0d%0aX:y'.split(' '),
  ...`UPPER_ - _ ';%20drop%20table%20users;%20-- %F0%9F%92%A9 ${'a'.repeat(10_000)} %2e%2e * ~`.split(' '),
  ...'__proto__%20 constructor%2f %7B%7B7*7%7D%7D %3Cscript%3E'.split(' '),
];

const BAD_QUERY_VALUES = [
  '',
  ...'x -1 1.5 1e9 99999999999999999999 NaN null [] true%00 %ed%a0%80'.split(' '),
  'a'.repeat(5_000),
];

function badParameter(target: Target, chosen: Parameter, components: unknown, dice: Dice) {
  const { location, name, schema } = chosen;
  const written = dice.pick(location === 'path' ? BAD_NAMES : BAD_QUERY_VALUES);
  const value = decoded(written);
  // A query value is text: it is invalid when neither the text nor its parsed value matches.
  const meanings = [
    value,
    ...(value !== undefined && /^-?\d+(?:\.\d+)?$/.test(value) ? [Number(value)] : []),
  ];
  if (
    meanings.some(
      (meaning) => meaning !== undefined && isClean(meaning) && accepts(schema, meaning, components),
    )
  )
    return;
  const names = new Map(target.parameters.map((parameter) => [parameter.name, parameter.example]));
  if (location === 'path') names.set(name, written);
  const query = location === 'query' ? `?${name}=${written}` : '';
  return {
    flaw: `${location} ${name} = ${written.slice(0, 40)}`,
    target: `${fill(target.path, names)}${query}`,
    headers: target.body === undefined ? [] : JSON_TYPE,
    body: Buffer.from(target.body === undefined ? '' : JSON.stringify(target.body.example)),
  };
}

function badBodyValue(target: Target, body: NonNullable<Target['body']>, components: unknown, dice: Dice) {
  const value = mutated(body.example, dice);
  const text = JSON.stringify(value) ?? 'null';
  const named = CALLS.test(target.path) ? namesIn(JSON.parse(text)) : JSON.parse(text);
  // A field that is null is absent where it is optional.
  const meanings = [JSON.parse(text), JSON.parse(text, (_, part) => part ?? undefined)];
  if (isClean(named) && meanings.some((meaning) => accepts(body.schema, meaning, components))) return;
  return {
    flaw: `body ${text.slice(0, 200)}`,
    target: exampleTarget(target),
    headers: JSON_TYPE,
    body: Buffer.from(text),
  };
}

/** Bytes that are not JSON, or JSON with invalid text. */
function badBodyText(target: Target, { example }: NonNullable<Target['body']>, dice: Dice) {
  const text = JSON.stringify(example);
  const [what, bytes] = dice.pick<readonly [string, Buffer]>([
    ['cut off', Buffer.from(text.slice(0, 1 + dice.below(text.length - 1)))],
    ['nothing', Buffer.alloc(0)],
    ['twice', Buffer.from(text + text)],
    ['UTF-16', Buffer.from(text, 'utf16le')],
    [
      'not UTF-8',
      Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc3, 0x28, 0xff]), Buffer.from('"}')]),
    ],
    ['NaN', Buffer.from('{"weight":NaN}')],
    ['a bare NUL', Buffer.from('{"name":"a\0b"}')],
    ['nested lists', Buffer.from('['.repeat(5_000) + ']'.repeat(5_000))],
    ['nested objects', Buffer.from(`${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}`)],
    ['never closed', Buffer.from('{"a":'.repeat(20_000))],
    ['noise', Buffer.from(Array.from({ length: 64 }, () => dice.below(256)))],
    ['huge', Buffer.from(JSON.stringify({ name: 'x'.repeat(70_000) }))],
  ]);
  return { flaw: `body: ${what}`, target: exampleTarget(target), headers: JSON_TYPE, body: bytes };
}

/** Forms in which a field is missing, empty, or not text. */
function badForm(target: Target, dice: Dice) {
  const form = dice.pick([
    ...['', '&&&===', 'username=ada', 'password=x', 'username=&password='],
    ...['username=a%00b&password=correct+horse', 'username=%ed%a0%80&password=correct+horse'],
    ...[`username=${'a'.repeat(5_000)}&password=x`, '{"username":"ada"}', 'username[a]=1&password[b]=2'],
    ...['USERNAME=ada&PASSWORD=x', `${'a=1&'.repeat(5_000)}username=ada`],
  ]);
  return {
    flaw: `form ${form.slice(0, 60)}`,
    target: exampleTarget(target),
    headers: [['Content-Type', FORM] as const],
    body: Buffer.from(form),
  };
}

function badBodyHeaders(target: Target, { example }: NonNullable<Target['body']>, dice: Dice) {
  const header = dice.pick<readonly [string, string]>([
    ['Content-Type', 'text/plain'],
    ['Content-Type', 'application/jsonp'],
    ['Content-Type', 'multipart/form-data; boundary=x'],
    ['Content-Type', ';;;'],
    ['Content-Type', `application/${'x'.repeat(9_000)}`],
    ['Content-Type', 'application/xml'],
    ['Content-Type', ''],
  ]);
  return {
    flaw: header.join(': ').slice(0, 60),
    target: exampleTarget(target),
    headers: [header],
    body: Buffer.from(JSON.stringify(example)),
  };
}

/** Values of every JSON type, including ones that often cause bugs. */
const STRANGE_VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, -0, Number.MAX_SAFE_INTEGER, '', ' ', 'x', 'x'.repeat(3_000)],
  ...['\u0000', 'a\ud800', '\udc00b', '\u202e', '../../etc/passwd', '#{7*7}', "' or 1=1 --", 'http://['],
  'javascript:alert(1)',
  ...[[], [null], [[[]]], {}, { '': '' }, { constructor: { prototype: 1 } }, { toString: 1 }, { length: -1 }],
];

/** A copy in which one value is replaced, removed, renamed, or has an added sibling. */
function mutated(value: unknown, dice: Dice): unknown {
  if (typeof value !== 'object' || value === null || dice.below(6) === 0) return dice.pick(STRANGE_VALUES);
  if (Array.isArray(value)) {
    const index = dice.below(Math.max(1, value.length));
    return value.with === undefined || value.length === 0
      ? [dice.pick(STRANGE_VALUES)]
      : value.with(index, mutated(value[index], dice));
  }
  const entries = Object.entries(value);
  const name = entries.length === 0 ? 'x' : dice.pick(entries)[0];
  switch (dice.below(5)) {
    case 0:
      return Object.fromEntries(entries.filter(([key]) => key !== name));
    case 1:
      return {
        ...value,
        [dice.pick(['extra', 'x'.repeat(300), 'a\u0000', '\ud800', '__proto__x', 'Name'])]:
          dice.pick(STRANGE_VALUES),
      };
    case 2:
      return Object.fromEntries(
        entries.map(([key, child]) => [key === name ? key.toUpperCase() : key, child]),
      );
    default:
      return Object.fromEntries(
        entries.map(([key, child]) => [key, key === name ? mutated(child, dice) : child]),
      );
  }
}

/** Routes that pass on what their callers write, except names. */
const CALLS = /\/(?:tools\/call|resources\/read|prompts\/get|completion\/complete)$/;

function namesIn(body: unknown): unknown {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
    ? Object.fromEntries(Object.entries(body).filter(([, value]) => typeof value === 'string'))
    : body;
}

function isClean(value: unknown): boolean {
  return !/\\u0000|\\ud[89a-f]/i.test(JSON.stringify(value));
}

/** Undefined when it does not decode to text. */
function decoded(written: string): string | undefined {
  try {
    return decodeURIComponent(written);
  } catch {
    return undefined; // not UTF-8
  }
}

function accepts(schema: Node, value: unknown, components: unknown): boolean {
  return Schema.Check({ ...schema, components }, value);
}

function exampleTarget({ path, parameters }: Target): string {
  return fill(path, new Map(parameters.map(({ name, example }) => [name, example])));
}

function fill(path: string, names: ReadonlyMap<string, string>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => names.get(name) ?? '');
}

function isBreakable({ location, schema }: Parameter): boolean {
  return location === 'path' || schema.type !== 'string' || 'enum' in schema;
}

function parameterOf(value: unknown): Parameter {
  const { name, in: location, schema, example = '' } = nodeOf(value);
  return { name: String(name), location: String(location), schema: nodeOf(schema), example: String(example) };
}

function bodyOf(requestBody: Node): NonNullable<Target['body']> {
  const content = nodeOf(requestBody.content);
  const { schema, example } = nodeOf(content['application/json']);
  return { schema: nodeOf(schema), example, isForm: FORM in content };
}

function nodeOf(value: unknown): Node {
  if (typeof value === 'object' && value !== null) return Object(value);
  throw new TypeError('the API description is not as it is known here');
}
