// Logs in to a cluster with the program that a kubeconfig names (`exec`), like kubectl: runs it, reads the credential that it
// prints, and keeps that until shortly before it expires. Source: ADR 60; the Kubernetes reference, "client-go credential
// plugins".

import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/schema';
import { codeOf, messageOf } from '../domain/errors/errors.ts';
import { childEnvironment, type Variables } from '../domain/instances/command.ts';
import type { JsonObject } from '../domain/json/json.ts';
import { cutText } from '../domain/text.ts';
import { settlesWithin, systemClock, timeLimit } from '../domain/time/clock.ts';
import { killGroup, killTree, ownsGroup } from '../programs/process-group.ts';
import { type Credential, type Login, SourceError } from './provider.ts';

/** The longest run of the program, in ms: it may ask a cloud, which takes seconds. */
export const RUN_MS = 30_000;
/** The longest wait for the end of its output after its exit, in ms. */
const DRAIN_MS = 500;
export const OUTPUT_BYTES = 256 * 1024;
/** The most characters of its standard error that are kept. */
const MAX_ERROR_CHARACTERS = 1_000;
/**
 * The time before its end at which a credential is renewed, in ms; a short-lived one is renewed after nine tenths of
 * its life.
 */
const RENEW_MS = 60_000;
/**
 * The settings of the programs for EKS, GKE and AKS, which the program gets besides those that every child of the
 * gateway gets.
 */
const CLOUD_VARIABLES = /^(?:(?:AAD|AWS|AZURE|CLOUDSDK|GOOGLE)_|KUBECONFIG$)/;

const orNull = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const Exec = Type.Object({
  apiVersion: Type.Union([
    Type.Literal('client.authentication.k8s.io/v1'),
    Type.Literal('client.authentication.k8s.io/v1beta1'),
  ]),
  command: Type.String({ minLength: 1 }),
  args: orNull(Type.Array(Type.String())),
  env: orNull(Type.Array(Type.Object({ name: Type.String({ minLength: 1 }), value: Type.String() }))),
  installHint: orNull(Type.String()),
  interactiveMode: orNull(Type.String()),
  provideClusterInfo: orNull(Type.Boolean()),
});

const Answer = Type.Object({
  kind: Type.Literal('ExecCredential'),
  apiVersion: Type.String(),
  status: Type.Object({
    expirationTimestamp: orNull(Type.String()),
    token: orNull(Type.String()),
    clientCertificateData: orNull(Type.String()),
    clientKeyData: orNull(Type.String()),
  }),
});

interface LoginOptions {
  /** The cluster as data for the program, if the program wants it; without a credential. */
  readonly cluster: JsonObject & { readonly server: string };
  /** The kubeconfig: a command such as `./login` is relative to its folder. */
  readonly file: string;
  readonly env: Variables;
  /** Ends a program that runs. */
  readonly signal: AbortSignal;
}

/** The login of one user of a kubeconfig. It runs one program at a time, however many requests wait for it. */
export class LoginProgram implements Login {
  readonly #exec: Static<typeof Exec>;
  readonly #options: LoginOptions;
  #kept: { readonly credential: Credential; readonly renewAtMs: number } | undefined;
  #running: Promise<Credential> | undefined;

  /** Throws SourceError for a field `exec` that cannot be used. */
  constructor(exec: unknown, options: LoginOptions) {
    this.#options = options;
    if (!Check(Exec, exec))
      throw this.#error(
        'the field exec of its user is not valid: it needs a command and the apiVersion client.authentication.k8s.io/v1 or v1beta1',
      );
    if (exec.interactiveMode === 'Always')
      throw this.#error(
        `its login program "${exec.command}" is interactive (interactiveMode: Always), but its questions cannot be answered here`,
      );
    this.#exec = exec;
  }

  readonly credential = (refused?: Credential): Promise<Credential> => {
    const kept = this.#kept;
    if (kept !== undefined && kept.credential !== refused && systemClock.now() < kept.renewAtMs)
      return Promise.resolve(kept.credential);
    this.#running ??= this.#login().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  };

  async #login(): Promise<Credential> {
    const { command } = this.#exec;
    const text = await this.#output();
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch {
      // The message of the parser would quote the credential.
    }
    if (!Check(Answer, answer) || answer.apiVersion !== this.#exec.apiVersion)
      throw this.#error(
        `its login program "${command}" printed no ExecCredential of ${this.#exec.apiVersion}`,
      );
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = answer.status;
    if (!token && !(cert && key))
      throw this.#error(
        `its login program "${command}" printed neither a token nor a certificate with its key`,
      );
    const credential = { token: token || undefined, ...(cert && key ? { cert, key } : {}) };
    const lifeMs = expirationTimestamp
      ? Date.parse(expirationTimestamp) - systemClock.wall()
      : Number.POSITIVE_INFINITY;
    if (Number.isNaN(lifeMs))
      throw this.#error(`its login program "${command}" printed an invalid time of expiry`);
    this.#kept = { credential, renewAtMs: systemClock.now() + lifeMs - Math.min(RENEW_MS, lifeMs / 10) };
    return credential;
  }

  /** Runs the program and resolves with its standard output. Ends all of its processes. */
  async #output(): Promise<string> {
    const { command, installHint } = this.#exec;
    const name = `its login program "${command}"`;
    let child: ChildProcess;
    try {
      child = this.#start();
    } catch (thrown) {
      throw this.#error(`${name} cannot be started: ${messageOf(thrown)}`, thrown);
    }
    const over = AbortSignal.any([this.#options.signal, timeLimit(systemClock, RUN_MS)]);
    const ended = Promise.withResolvers<string | undefined>();
    const onOver = () =>
      ended.resolve(this.#options.signal.aborted ? 'was stopped' : `did not end within ${RUN_MS / 1_000} s`);
    over.addEventListener('abort', onOver);
    if (over.aborted) onOver();
    const output: Buffer[] = [];
    let bytes = 0;
    let errors = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > OUTPUT_BYTES) ended.resolve(`printed more than ${OUTPUT_BYTES / 1_024} KiB`);
      else output.push(chunk);
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (errors.length < MAX_ERROR_CHARACTERS) errors += text.slice(0, MAX_ERROR_CHARACTERS);
    });
    const closed = new Promise((settle) => child.once('close', settle));
    child.once('error', (error) => {
      const hint = installHint ? `: ${installHint}` : ': install it, or correct the PATH of the gateway';
      const isMissing = codeOf(error) === 'ENOENT';
      ended.resolve(isMissing ? `was not found${hint}` : `cannot be started: ${messageOf(error)}`);
    });
    child.once('exit', async (code, signal) => {
      await settlesWithin(closed, DRAIN_MS, systemClock); // a process that it left behind may hold the pipe
      ended.resolve(
        code === 0 ? undefined : signal === null ? `exited with code ${code}` : `was ended by ${signal}`,
      );
    });
    const problem = await ended.promise;
    over.removeEventListener('abort', onOver);
    kill(child);
    child.stdout?.destroy();
    child.stderr?.destroy();
    if (problem === undefined) return Buffer.concat(output).toString('utf8');
    const first = errors.split('\n').find((line) => line.trim() !== '');
    throw this.#error(`${name} ${problem}${first === undefined ? '' : `: ${cutText(first, 200)}`}`);
  }

  #start(): ChildProcess {
    const { cluster, file, env } = this.#options;
    const { command, args, env: own, provideClusterInfo, apiVersion } = this.#exec;
    const spec = { interactive: false, ...(provideClusterInfo ? { cluster } : {}) };
    const variables: Record<string, string> = {};
    for (const [name, value] of Object.entries(env))
      if (value !== undefined && CLOUD_VARIABLES.test(name)) variables[name] = value;
    for (const { name, value } of own ?? []) variables[name] = value;
    variables.KUBERNETES_EXEC_INFO = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
    return spawn(/[/\\]/.test(command) ? resolve(dirname(file), command) : command, args ?? [], {
      env: childEnvironment(variables, env),
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
      detached: ownsGroup, // it leads its own group, so that its children end with it
    });
  }

  #error(reason: string, cause?: unknown): SourceError {
    return new SourceError(`${this.#options.cluster.server}: ${reason}`, { cause });
  }
}

/** Ends the program and what it started. On Windows, where that is found by its parent, only before it exits. */
function kill({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined) return;
  if (ownsGroup) killGroup(pid, 'SIGKILL');
  else if (exitCode === null && signalCode === null) killTree(pid); // later the id may be that of another program
}
