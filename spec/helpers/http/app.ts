// A real app with a real gateway on a real port, for the specs of src/http. Backends are in-process functions that answer
// like the fixture servers, unless a spec registers others.

import { Writable } from 'node:stream';
import { pino } from 'pino';
import type { Auth } from '../../../src/auth/auth.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { memoryBounds } from '../../../src/domain/memory/held-bytes.ts';
import { createGateway, Gateway } from '../../../src/gateway/gateway.ts';
import type { GatewayOptions } from '../../../src/gateway/gateway-types.ts';
import { type AppOptions, createApp, type HttpApp } from '../../../src/http/app.ts';
import { BodyRequest } from '../../../src/http/body/body-request.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { isObject, type Json } from '../../fixtures/wire.ts';
import { startRawServer } from '../../transports/raw-server.ts';
import { fixtureHandler } from '../backends/function-backend.ts';
import type { Suite } from '../suite.ts';
import { anonymousAuth } from './anonymous-auth.ts';

/** One answer, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as an object; empty when it is not one. */
  readonly body: Json;
  /** The status, followed by the error code if there is one: `404 NOT_FOUND`. */
  readonly outcome: string;
  /** Location and type of the first issue of a 422: `body.name missing`. Empty when there is none. */
  readonly issue: string;
}

/** Options of a request besides method and path. */
export interface Ask {
  /** An object is sent as JSON, a string or bytes unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Aborts the request. */
  readonly signal?: AbortSignal;
}

/** A running app. The caller closes it. */
export interface AppFixture {
  readonly gateway: Gateway;
  readonly auth: Auth;
  readonly app: HttpApp;
  readonly port: number;
  readonly url: string;
  /** Every log line so far, parsed. */
  readonly log: readonly Json[];
  ask(method: string, path: string, ask?: Ask): Promise<Answer>;
  /** Registers a function that serves the fixture's tools, resources and prompts, and waits for it to be healthy. */
  serve(template: string, id: string, handler?: InProcessHandler): Promise<void>;
  close(): Promise<void>;
}

/** Starts an app on a free port of 127.0.0.1. */
export async function startApp(
  options: Partial<AppOptions> & {
    readonly logLevel?: string;
    readonly gateway?: Gateway | GatewayOptions;
  } = {},
): Promise<AppFixture> {
  const { logLevel = 'silent', gateway: given = {}, auth = anonymousAuth(), ...rest } = options;
  const log: Json[] = [];
  const requestBounds = memoryBounds(2 ** 30).requests;
  const gateway = given instanceof Gateway ? given : await createGateway({ requestBounds, ...given });
  const app = createApp(gateway, {
    log: pino({ level: logLevel }, lineSink(log)),
    auth,
    isPublic: false,
    corsOrigins: ['*'],
    allowedCommands: [],
    allowedHosts: [],
    allowedOrigins: [],
    trustedProxies: [],
    settings: [],
    maxBodyBytes: LIMITS.requestBodyBytes,
    ...rest,
  });
  const { port, close } = await startRawServer(app.callback(), 0, { IncomingMessage: BodyRequest });
  const url = `http://127.0.0.1:${port}`;
  return {
    gateway,
    auth,
    app,
    port,
    url,
    log,
    ask: (method, path, ask) => send(method, `${url}${path}`, ask),
    serve: async (template, id, handler = fixtureHandler(id)) => {
      await gateway.register(template, { id, handler }, { waitMs: 5_000 });
    },
    close: async () => {
      await close();
      await gateway.close({ graceMs: 0 });
      await auth.close();
    },
  };
}

/** Starts an app before, and closes it after, all tests of a suite or each test. */
export function appFor<App extends { close(): unknown }>(
  test: Suite,
  start: () => Promise<App>,
  of: 'all' | 'each' = 'all',
): App {
  const [before, after] = of === 'all' ? [test.before, test.after] : [test.before.each, test.after.each];
  const started: App[] = [];
  before(async () => void started.push(await start()));
  after(() => started.pop()?.close());
  return new Proxy(Object.create(null), { get: (_target, name) => Reflect.get(started[0] ?? {}, name) });
}

/** Sends one request with fetch and reads the answer to its end. */
export async function send(method: string, url: string, ask: Ask = {}): Promise<Answer> {
  const { body, headers = {}, signal = null } = ask;
  const isJson = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array);
  const response = await fetch(url, {
    ...{ method, signal },
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : Buffer.from(body) }),
  });
  const { status, headers: answered } = response;
  const text = await response.text();
  const found = parse(text);
  const outcome = [status, found.error_code].filter(Boolean).join(' ');
  const { loc = [], type = '' } = Object([found.detail].flat()[0]);
  const issue = `${loc.join('.')} ${type}`.trim();
  return { status, headers: answered, text, body: found, outcome, issue };
}

/** The values of these headers; null for one that was not sent. */
export function headersOf({ headers }: Pick<Answer, 'headers'>, ...names: string[]): (string | null)[] {
  return names.map((name) => headers.get(name));
}

function parse(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {}; // an event stream, or nothing: specs look at the text
  }
}

/** A stream that parses the lines of pino into `log`. */
export function lineSink(log: Json[]): Writable {
  return new Writable({
    write: (chunk, _encoding, done) => {
      log.push(parse(String(chunk)));
      done();
    },
  });
}
