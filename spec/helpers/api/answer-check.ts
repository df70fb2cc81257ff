// Checks an answer against the API description: whether its status is documented for the route, its body matches the
// schema, and its headers are present.

import * as Schema from 'typebox/schema';

/** An answer as it was sent. */
export interface SeenAnswer {
  readonly method: string;
  /** The target of the request line, query included. */
  readonly target: string;
  readonly status: number;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Undefined when it was too large to keep. */
  readonly body: Buffer | undefined;
}

/** The differences from the description, a clause each; empty when there are none. */
export type AnswerCheck = (answer: SeenAnswer) => string[];

type Node = Readonly<Record<string, unknown>>;

/** Makes the check for a document; each schema is compiled on first use. */
export function answerCheck(document: Node): AnswerCheck {
  const paths = Object.entries(nodeAt(document, 'paths')).map(([template, item]) => ({
    segments: template.split('/'),
    operations: asNode(item),
  }));
  const bodies = new BodyCheck(document);
  const resolve = (value: unknown): Node => resolved(document, value);

  return (answer) => {
    const { method, target, status } = answer;
    const path = pathOf(target);
    // The authorization server and its metadata are described by the RFCs of OAuth.
    if (
      /^\/oauth\/|^\/connections(?:\/|$)|^\/\.well-known\/o(?:auth-authorization-server|penid-configuration)$/.test(
        target.split('?')[0] ?? '',
      )
    )
      return [];
    const fitting = paths.filter(({ segments }) => fits(segments, path));
    if (fitting.length === 0) return besides(answer, NOWHERE, bodies);
    const name = method === 'HEAD' ? 'get' : method.toLowerCase();
    // A path can match both a literal path and a path with parameters, like `/mcp/sse`.
    const operation = fitting.find(({ operations }) => name in operations)?.operations[name];
    if (operation === undefined) return besides(answer, OTHER_METHODS, bodies);
    const responses = nodeAt(asNode(operation), 'responses');
    const described = responses[status] ?? responses.default;
    if (described === undefined) return [`the status ${status} is not documented`];
    const { headers = {}, content = {} } = resolve(described);
    return [
      ...headerIssues(
        answer,
        Object.entries(asNode(headers)).map(([name, header]) => [name, resolve(header)]),
      ),
      ...contentIssues(answer, asNode(content), bodies),
    ];
  };
}

/** Error codes for paths without a route, and for methods that a path does not support. */
const NOWHERE = ['NOT_FOUND', 'ORIGIN_NOT_ALLOWED', 'INTERNAL_ERROR'];
const OTHER_METHODS = ['METHOD_NOT_ALLOWED', 'ORIGIN_NOT_ALLOWED', 'INTERNAL_ERROR'];

/** Checks an answer from outside the table of routes: it must be an error with one of these codes, or answer OPTIONS. */
function besides(answer: SeenAnswer, codes: readonly string[], bodies: BodyCheck): string[] {
  const { method, status, headers } = answer;
  if (method === 'OPTIONS' && status === 204) return [];
  if (status === 405 && !headers.has('allow')) return ['a 405 without Allow'];
  if (status < 400) return [`the status ${status} where no route is documented`];
  const schema = {
    allOf: [{ $ref: '#/components/schemas/ErrorBody' }, { properties: { error_code: { enum: codes } } }],
  };
  return method === 'HEAD' ? [] : bodies.issues(schema, answer);
}

function headerIssues(
  { headers, status }: SeenAnswer,
  described: readonly (readonly [name: string, header: Node])[],
): string[] {
  const issues = described.flatMap(([name, { required, schema = {} }]) => {
    const value = headers.get(name.toLowerCase());
    if (value === undefined) return required === true ? [`the header ${name} is missing`] : [];
    const isNumber = asNode(schema).type === 'integer';
    return isNumber && !/^\d+$/.test(value) ? [`the header ${name} is "${value}"`] : [];
  });
  const limits = ['limit', 'remaining', 'reset'].filter((word) => headers.has(`x-ratelimit-${word}`));
  if (limits.length > 0 && limits.length < 3) issues.push(`of the X-RateLimit headers only ${limits.join()}`);
  const isDocumented = described.some(([name]) => name.startsWith('X-RateLimit'));
  if (limits.length > 0 && !isDocumented) issues.push('X-RateLimit headers that are not documented');
  if (status === 429 && !headers.has('retry-after')) issues.push('a 429 without Retry-After');
  return issues;
}

function contentIssues(answer: SeenAnswer, content: Node, bodies: BodyCheck): string[] {
  const { method, headers, body, status } = answer;
  const types = Object.keys(content);
  if (types.length === 0) {
    return (body?.byteLength ?? 1) > 0 ? [`a body with the status ${status}, which has none`] : [];
  }
  const type = (headers.get('content-type') ?? '').split(';')[0] ?? '';
  if (!types.includes(type)) return [`the media type "${type}" is not documented, only ${types.join()}`];
  if (method === 'HEAD' || type !== 'application/json') return [];
  return bodies.issues(asNode(asNode(content[type]).schema), answer);
}

/** Checks JSON bodies against schemas of one document. */
class BodyCheck {
  readonly #components: unknown;
  readonly #compiled = new Map<string, ReturnType<typeof Schema.Compile>>();

  constructor(document: Node) {
    this.#components = document.components;
  }

  issues(schema: Node, { body }: SeenAnswer): string[] {
    if (body === undefined) return [];
    let value: unknown;
    try {
      value = JSON.parse(body.toString('utf8'));
    } catch {
      return [`a body that is not JSON: ${body.toString('utf8').slice(0, 100)}`];
    }
    const validator = this.#compile(schema);
    if (validator.Check(value)) return [];
    const [, errors] = validator.Errors(value);
    return errors.slice(0, 5).map(({ instancePath, message }) => `${instancePath || 'the body'} ${message}`);
  }

  #compile(schema: Node): ReturnType<typeof Schema.Compile> {
    const key = JSON.stringify(schema);
    const known = this.#compiled.get(key) ?? Schema.Compile({ ...schema, components: this.#components });
    this.#compiled.set(key, known);
    return known;
  }
}

/** The segments of a path template, or of a target; the router ignores a trailing slash. */
function pathOf(target: string): readonly string[] {
  const path =
    (target.startsWith('/') ? target : target.replace(/^[a-z]+:\/\/[^/?#]*/i, '')).split(/[?#]/)[0] ?? '';
  return (path.length > 1 ? path.replace(/\/$/, '') : path).split('/');
}

/** `{path}` is the rest of a path: OpenAPI has no notation for it. */
function fits(segments: readonly string[], path: readonly string[]): boolean {
  const isOpenEnded = segments.at(-1) === '{path}' && path.length > segments.length;
  return (
    (isOpenEnded || segments.length === path.length) &&
    segments.every((segment, index) =>
      segment.startsWith('{') ? isOpenEnded || path[index] !== '' : segment === path[index],
    )
  );
}

function resolved(document: Node, value: unknown): Node {
  const { $ref } = asNode(value);
  if (typeof $ref !== 'string') return asNode(value);
  return $ref
    .slice(2)
    .split('/')
    .reduce((node, word) => nodeAt(node, word), document);
}

function nodeAt(node: Node, field: string): Node {
  return asNode(node[field]);
}

function asNode(value: unknown): Node {
  if (typeof value === 'object' && value !== null) return Object(value);
  throw new TypeError('the API description is not as it is known here');
}
