// Containers of Docker and Podman, which have the same API: finds the engines, the containers that are marked
// as instances, their endpoints, and changes of them. dockerode is loaded with the first engine.

import { hash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type Docker from 'dockerode';
import type { ContainerInspectInfo } from 'dockerode';
import { from, lastValueFrom, mergeMap, toArray } from 'rxjs';
import { codeOf, messageOf } from '../domain/errors/errors.ts';
import { commandWords, type WrittenCommand } from '../domain/instances/command.ts';
import type { FoundInstance, SkippedInstance, SourceListing } from '../domain/instances/found-instances.ts';
import { type InstanceInput, instanceIdOf } from '../domain/instances/instance.ts';
import { joinHostPort } from '../domain/local-address.ts';
import { isTemplateId } from '../domain/template-name.ts';
import { systemClock, timeLimit } from '../domain/time/clock.ts';
import {
  type DiscoveryContext,
  linesOf,
  type OnChange,
  type Provider,
  type Source,
  SourceError,
  type TemplateHints,
} from './provider.ts';
import { readSourceFile } from './source-file.ts';

/** The label that makes a container an instance of the template it names. */
const TEMPLATE = 'stagedoor.template';
const PORT = 'stagedoor.port';
/** The label with a program to run in the container; it speaks MCP on its standard input and output. */
const COMMAND = 'stagedoor.command';
/** The convention of other tools: a label with its value, and the label with the template. */
const MANAGED = { label: 'managed-by=mcp-template', template: 'template' } as const;

/** The longest wait for one answer of a listing, and for all of them, in ms. */
const [ANSWER_MS, LIST_MS] = [5_000, 50_000];
/**
 * The time after which a stream of events is opened again, in ms: a connection that was lost on the way to the engine is silent
 * for ever.
 */
const WATCH_MS = 290_000;
/** The most containers that are inspected at the same time. */
const MAX_INSPECTED = 16;

/** The engine at the named address; without a name those at the existing default sockets, like the engines' tools. */
function containerSources(
  context: DiscoveryContext,
  named: string | undefined,
  sockets: readonly (string | undefined)[],
): readonly Source[] {
  const found = sockets.filter((path) => path !== undefined && existsSync(path));
  const addresses = named
    ? [checkedAddress(named)]
    : new Set(found.map((path) => `unix://${realpathSync(String(path))}`));
  return [...addresses].map((address) => containerSource(address, context));
}

function containerSource(address: string, { hintsOf, signal }: DiscoveryContext): Source {
  const origin = `containers:${hash('sha256', address).slice(0, 16)}`;
  const fail = (thrown: unknown): never => {
    throw engineFailure(address, thrown);
  };
  const list = async () => ({
    origin,
    ...listingOf(await inspectAll(address, signal), address, hintsOf),
  });
  return {
    address,
    origin,
    list: () => list().catch(fail),
    watch: (onChange, onOpen) => watch(address, onChange, onOpen, signal).catch(fail),
  };
}

async function inspectAll(address: string, signal: AbortSignal): Promise<readonly ContainerInspectInfo[]> {
  const engine = await connectEngine(address);
  const ended = AbortSignal.any([signal, timeLimit(systemClock, LIST_MS)]);
  const within = () => AbortSignal.any([ended, timeLimit(systemClock, ANSWER_MS)]);
  const lists = await Promise.all(
    [TEMPLATE, MANAGED.label].map((label) =>
      engine.listContainers({ filters: { label: [label] }, abortSignal: within() }),
    ),
  );
  const ids = new Set(lists.flat().map(({ Id: id }) => id));
  const inspect = async (id: string): Promise<ContainerInspectInfo | undefined> => {
    try {
      return await engine.getContainer(id).inspect({ abortSignal: within() });
    } catch (thrown) {
      if (isAboutRemoved(thrown)) return undefined;
      throw thrown;
    }
  };
  const inspected = await lastValueFrom(from(ids).pipe(mergeMap(inspect, MAX_INSPECTED), toArray()));
  return inspected.filter((container) => container !== undefined);
}

function listingOf(
  containers: readonly ContainerInspectInfo[],
  engine: string,
  hintsOf: DiscoveryContext['hintsOf'],
): Omit<SourceListing, 'origin'> {
  const found: FoundInstance[] = [];
  const skipped: SkippedInstance[] = [];
  for (const details of containers) {
    const labels = details.Config?.Labels ?? {};
    const template = labels[TEMPLATE] ?? labels[MANAGED.template] ?? '';
    const name = details.Name?.replace(/^\//, '') || details.Id.slice(0, 12);
    const reason = isTemplateId(template) ? reasonAgainst(details) : 'its label names no template';
    const input = reason ?? inputOf(details, hintsOf(template) ?? {}, engine);
    if (typeof input === 'string') {
      skipped.push({ template, name, reason: input });
      continue;
    }
    const id = instanceIdOf(template, details.Id);
    found.push({ template, id, name, input, container: { engine, id: details.Id } });
  }
  return { found, skipped };
}

function reasonAgainst({ State: state }: ContainerInspectInfo): string | undefined {
  if (!state.Running) return 'it is not running';
  if (state.Paused) return 'it is paused';
  return state.Health?.Status === 'unhealthy' ? 'its health check fails' : undefined;
}

function inputOf(
  details: ContainerInspectInfo,
  hints: TemplateHints,
  engine: string,
): InstanceInput | string {
  const { [COMMAND]: command, [PORT]: labelled } = details.Config?.Labels ?? {};
  if (command !== undefined) return programOf({ command }, `the label ${COMMAND}`);
  const port = labelled === undefined ? hints.ports?.[0] : Number(labelled);
  if (labelled !== undefined && !(/^\d{1,5}$/.test(labelled) && port && port <= 65_535))
    return `its label ${PORT} is not a port`;
  const isProgram = hints.transport === 'stdio' || (hints.command !== undefined && port === undefined);
  if (labelled === undefined && isProgram && hints.command !== undefined)
    return programOf(hints, "the template's command");
  const endpoint = endpointOf(details, port, engine);
  if (!endpoint.startsWith('http')) return endpoint;
  return { endpoint, ...(hints.transport === 'sse' ? { transport: 'sse' } : {}) };
}

function programOf(written: WrittenCommand, where: string): InstanceInput | string {
  const split = commandWords(written);
  if ('problem' in split) return `${where} cannot be split into words: ${split.problem}`;
  const [program, ...words] = split.words;
  if (program === undefined) return `${where} is empty`;
  if ([program, ...words].some((word) => /\$\{[A-Z][A-Z0-9_]*\}/.test(word)))
    return `${where} has a placeholder, which sync does not fill: set the label ${COMMAND}`;
  return { command: program, args: words };
}

/** The URL at which this process reaches a port of the container; else the reason why it has none, as a clause. */
function endpointOf(details: ContainerInspectInfo, wanted: number | undefined, engine: string): string {
  const { Ports: published = {}, Networks: networks } = details.NetworkSettings;
  const host = engine.startsWith('unix:') ? '127.0.0.1' : urlOf(engine).hostname.replace(/^\[|\]$/g, '');
  const exposed = Object.keys({ ...published, ...details.Config?.ExposedPorts }).flatMap(
    (name) => /^(\d+)\/tcp$/.exec(name)?.[1] ?? [],
  );
  const port = wanted ?? (exposed.length === 1 ? Number(exposed[0]) : undefined);
  if (port === undefined)
    return `its address is unknown: set the label ${PORT} or ${COMMAND}, or give the template a port`;
  if (details.HostConfig?.NetworkMode === 'host') return `http://${joinHostPort(host, port)}`;
  const bindings: readonly { HostIp?: string; HostPort?: string }[] = published?.[`${port}/tcp`] ?? [];
  const binding = bindings.find(({ HostIp: ip = '' }) => !ip.includes(':')) ?? bindings[0];
  const address = Object.values(networks ?? {}).find((each) => each?.IPAddress)?.IPAddress;
  // Ports are published on the machine of the engine; inside a container, the loopback address is not that machine's.
  const isInContainer = existsSync('/.dockerenv') || existsSync('/run/.containerenv');
  if (binding?.HostPort && !(isInContainer && address)) {
    const ip = /^(0\.0\.0\.0|::|)$/.test(binding.HostIp ?? '') ? host : String(binding.HostIp);
    return `http://${joinHostPort(ip, binding.HostPort)}`;
  }
  if (address) return `http://${joinHostPort(address, port)}`;
  return `its port ${port} is not published, and it has no address of its own`;
}

/** The events that may add or remove an instance. Podman also calls an end `died` in its own API. */
const ACTIONS = /^(start|die|died|pause|unpause|health_status)\b/;

async function watch(
  address: string,
  onChange: OnChange,
  onOpen: () => void,
  signal: AbortSignal,
): Promise<void> {
  const engine = await connectEngine(address);
  const ended = AbortSignal.any([signal, timeLimit(systemClock, WATCH_MS)]);
  const events = await engine.getEvents({ filters: { type: ['container'] }, abortSignal: ended });
  onOpen();
  try {
    for await (const line of linesOf(events)) takeEvent(line, onChange);
  } catch (thrown) {
    if (!ended.aborted) throw thrown;
  }
  if (!ended.aborted) throw new SourceError('the stream of events ended');
}

function takeEvent(line: string, onChange: OnChange): void {
  const { Action: action = '', Actor: actor }: { Action?: string; Actor?: { ID?: string } } =
    JSON.parse(line);
  if (!ACTIONS.test(action)) return;
  onChange(/^died?\b/.test(action) ? actor?.ID : undefined);
}

export const docker: Provider = async (context) => {
  const { DOCKER_HOST: host, HOME: home, XDG_RUNTIME_DIR: runtime } = context.env;
  const sockets = [runtime && join(runtime, 'docker.sock'), home && join(home, '.docker/run/docker.sock')];
  return containerSources(context, host, ['/var/run/docker.sock', ...sockets]);
};

export const podman: Provider = async (context) => {
  const { CONTAINER_HOST: host, XDG_RUNTIME_DIR: runtime } = context.env;
  const socket = runtime && join(runtime, 'podman/podman.sock');
  return containerSources(context, host, ['/run/podman/podman.sock', socket]);
};

// --- the connection to an engine ---------------------------------------------------------------------------

/**
 * The address if it has one of the forms `unix:///path`, `tcp://host:port`, `http://...` and `https://...`. Throws
 * SourceError for any other.
 */
function checkedAddress(written: string): string {
  if (/^unix:\/\/\/.+/.test(written)) return written;
  const [, scheme] = /^(tcp|https?):\/\/./.exec(written) ?? [];
  const url = scheme === undefined || !URL.canParse(written) ? undefined : urlOf(written);
  if (url === undefined || url.username !== '' || url.password !== '')
    throw new SourceError(
      'DOCKER_HOST and CONTAINER_HOST must be unix:///path or tcp://host:port, without credentials',
    );
  return `${scheme}://${url.host}`;
}

/** The parts of an address. As a URL of http or https it would lose the port 80 or 443, for which engines have other defaults. */
function urlOf(address: string): URL {
  return new URL(address.replace(/^https?:/, 'tcp:'));
}

export async function connectEngine(address: string): Promise<Docker> {
  const { default: Engine } = await import('dockerode');
  if (address.startsWith('unix://')) return new Engine({ socketPath: address.slice('unix://'.length) });
  const { hostname, port } = urlOf(address);
  const tls = tlsFiles(address);
  return new Engine({
    host: hostname,
    port: port || (tls === undefined ? 2375 : 2376),
    protocol: tls === undefined ? 'http' : 'https',
    ...tls,
  });
}

function tlsFiles(
  address: string,
): { ca: Buffer; cert: Buffer; key: Buffer } | Record<string, never> | undefined {
  const { DOCKER_CERT_PATH: folder, DOCKER_TLS_VERIFY: verify } = process.env;
  if (address.startsWith('http:') || (address.startsWith('tcp:') && !verify)) return undefined;
  if (!folder) return {};
  const file = (name: string) => readSourceFile(join(folder, name));
  return { ca: file('ca.pem'), cert: file('cert.pem'), key: file('key.pem') };
}

/** True for the error of a request about a container that was removed. */
export function isAboutRemoved(thrown: unknown): boolean {
  return thrown instanceof Error && 'statusCode' in thrown && thrown.statusCode === 404;
}

function engineFailure(address: string, thrown: unknown): SourceError {
  const why =
    codeOf(thrown) === 'ABORT_ERR' ? 'it does not answer' : messageOf(thrown).trim() || codeOf(thrown);
  return new SourceError(`${address}: ${why}`, { cause: thrown });
}
