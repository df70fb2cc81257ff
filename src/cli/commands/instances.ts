// Commands about the instances of a running gateway:
// `instance list | show | register | deregister | set | drain | resume | restart`.

import { resolve } from 'node:path';
import { filePieces } from '../../config/read-file.ts';
import { fileFault } from '../../domain/errors/errors.ts';
import { isMissing } from '../../domain/instances/start-failure.ts';
import { definedFields } from '../../domain/json/json.ts';
import { bytesWithin } from '../../domain/memory/bounded-bytes.ts';
import { didYouMean } from '../../domain/nearest.ts';
import { isTemplateId, TEMPLATE_RULE } from '../../domain/template-name.ts';
import { ownCommand } from '../../domain/version.ts';
import { commandAt } from '../background/daemon-files.ts';
import { type Command, type CommandInput, pairsOf } from '../command.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { detailLines, minute, printable, printResult, stateWord, table } from '../output.ts';
import {
  backendOf,
  elementsOf,
  type Fields,
  fields,
  instancesOf,
  objectsOf,
  shownReasonOf,
  shownStateOf,
  warningsOf,
} from '../remote/answers.ts';
import { CLIENT_OPTIONS, TEMPLATE_OPTION, WIDE_OPTION } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';
import { GATEWAY_ANSWER_MS, type Remote } from '../remote/remote.ts';
import { instancePath, requestCommand } from '../remote/request-command.ts';
import { ofTemplate } from '../remote/similar-names.ts';
import type { Terminal } from '../terminal.ts';

export const instanceList: Command = {
  name: 'instance list',
  summary: 'List every registered instance and its state',
  options: { ...TEMPLATE_OPTION, ...WIDE_OPTION, ...CLIENT_OPTIONS },
  examples: ['instance list', 'instance list --template search --wide', 'instance list --json'],
  run: async (input, terminal) => {
    const gateway = await requireGateway(input, terminal);
    const registry = registryOfTemplate(await gateway.request('/gateway/registry'), input.text('template'));
    const hasNodes = !input.has('json') && (await hasSeveralNodes(gateway, registry));
    return printResult(input, terminal, registry, () => listing(input, terminal, registry, hasNodes));
  },
};

/** The registry, or the part of one template. Throws CommandFailure when there is no such template. */
export function registryOfTemplate(registry: unknown, template: string | undefined): unknown {
  if (template === undefined) return registry;
  const templates = fields(fields(registry).templates);
  if (Object.hasOwn(templates, template)) return { templates: { [template]: templates[template] } };
  const guess = didYouMean(template, Object.keys(templates));
  throw new CommandFailure(`template "${template}" not found${guess === undefined ? '' : `; ${guess}`}`);
}

/** True when it is useful to name the node of each program. */
async function hasSeveralNodes(gateway: Remote, registry: unknown): Promise<boolean> {
  if (instancesOf(registry).every(({ node_id: node }) => typeof node !== 'string')) return false;
  const answer = await gateway.request('/gateway/nodes').catch(() => undefined); // the list is shown without them
  return objectsOf(fields(answer).nodes).filter(({ state }) => state !== 'ended').length > 1;
}

/** The node that runs the program of an instance; empty while none does, and for an endpoint. */
function nodeOf({ node_id: node, running_on: runner }: Fields): unknown {
  return runner === undefined ? (node ?? '') : (runner ?? '');
}

function listing(input: CommandInput, terminal: Terminal, registry: unknown, hasNodes: boolean): string {
  const records = instancesOf(registry);
  if (records.length === 0)
    return `no instance is registered; "${ownCommand('instance register --help')}" shows how`;
  return table(
    terminal,
    {
      TEMPLATE: 'template_name',
      INSTANCE: 'id',
      TRANSPORT: 'transport',
      ...(hasNodes && { NODE: nodeOf }),
      STATE: (record) => stateWord(terminal, shownStateOf(record)),
      WEIGHT: 'weight',
      'IN FLIGHT': 'in_flight',
      SESSIONS: 'sessions',
      'DEDICATED PROCESSES': 'own_processes',
      BACKEND: backendOf,
      REASON: shownReasonOf,
    },
    records,
    input,
  );
}

export const instanceShow: Command = {
  name: 'instance show',
  positionals: '<template> <id>',
  summary: 'Show an instance: its state and the reason, its counts, and what its program wrote last',
  options: CLIENT_OPTIONS,
  examples: ['instance show search search-1', 'instance show search search-1 --json'],
  run: async (input, terminal) => {
    const [template, id] = [input.positional(0), input.positional(1)];
    const gateway = await requireGateway(input, terminal);
    const read = () => gateway.request(instancePath(template, id));
    const record = fields(await ofTemplate(gateway, template, read, { id }));
    return printResult(input, terminal, record, () => details(terminal, record));
  },
};

/** The number of lines of standard error that are shown; the record has up to 100. */
const SHOWN_LINES = 20;

function details(terminal: Terminal, record: Fields): string {
  const words = elementsOf(record.stderr).slice(-SHOWN_LINES).map(String);
  const lines = detailLines(terminal, [
    ['instance', `${record.template_name}/${record.id}`],
    ['state', stateWord(terminal, shownStateOf(record))],
    ['reason', shownReasonOf(record)],
    ['ejected until', minute(fields(record.ejection).until)],
    ['next attempt', minute(record.next_attempt_at)],
    ['last check', minute(record.last_check)],
    ['transport', record.transport],
    ['era', record.era],
    ['backend', backendOf(record)],
    ['folder', record.working_dir],
    ['process', record.pid],
    ['node', record.running_on ?? record.node_id],
    ['weight', record.weight],
    ['in flight', record.in_flight],
    ['sessions', record.sessions],
    ['dedicated processes', record.own_processes],
    ['restarts', record.restarts],
    ['registered', `${minute(record.created_at)}, by ${record.source}`],
    ...metadataRows(record),
    ...warningsOf(record).map((warning) => ['warning', warning] as const),
  ]);
  if (words.length === 0) return lines;
  return [`${lines}\n\nlast lines on standard error:`, ...words.map((line) => `  ${printable(line)}`)].join(
    '\n',
  );
}

function metadataRows({ metadata }: Fields): readonly (readonly [string, unknown])[] {
  return Object.entries(fields(metadata)).map(([name, value]) => [`metadata.${name}`, value] as const);
}

export const instanceRegister: Command = {
  name: 'instance register',
  alias: 'gateway register',
  positionals: '<template>',
  summary:
    'Register an instance: an HTTP endpoint, a program that the gateway runs, or both: the program serves the endpoint',
  options: {
    '--endpoint <url>': 'URL of a server for Streamable HTTP or HTTP+SSE; without a path /mcp is added',
    '--header <NAME=VALUE>...': 'Header sent to the endpoint; NAME=@file takes the value from a file',
    '--auth <who>':
      'The server wants OAuth: shared, with one account for all, or user, with an account of each user',
    '--client-id <id>':
      'With --auth: the id of the gateway at the authorization server; default it registers itself',
    '--client-secret <@file>': 'With --client-id: a file with the secret',
    '--oauth-scopes <list>':
      'With --auth: the scopes to ask for, separated by commas; default what the server wants',
    '--command <line>': 'Program and its arguments, as one string; no shell is involved',
    '--working-dir <folder>': "Folder of the program; default the gateway's own",
    '--env <KEY=VALUE>...': 'Variable for the program',
    '--config <KEY=VALUE>...':
      'Setting of a template that has a definition, which says how to reach the server; KEY=@file takes the value from a file',
    '--defined': 'Reach the server as the definition of the template says; --config implies it',
    '--era <era>':
      'Speak only this era of MCP with the server: legacy or modern; default auto, which finds out',
    '--force': 'Accept a command that can reach files of the gateway itself; needs the scope admin',
    '--id <id>': 'Name of the instance in its template; default a generated one',
    '--metadata <KEY=VALUE>...': 'A note kept with the instance',
    '--node <id>':
      'Node that runs the program, or any: then it moves when its node ends; default this gateway, on a database server any without --working-dir',
    '--weight <number>': 'Share of the calls with weighted balancing, 1 to 1000; default 1',
    '--wait <seconds>': 'Wait until it is healthy; exit code 1 when it is not healthy by then',
    '--remove-on-failure': 'With --wait: deregister it again when it is not healthy by then',
    ...CLIENT_OPTIONS,
  },
  examples: [
    'instance register search --endpoint http://127.0.0.1:9000/mcp --weight 3',
    'instance register search --endpoint https://mcp.example.com --header Authorization=@token.txt',
    'instance register time --defined --wait 60',
    'instance register filesystem --config folders=/srv/shared',
    'instance register files --command "npx -y @modelcontextprotocol/server-filesystem ./shared" --wait 300',
  ],
  run: async (input, terminal) => {
    const template = input.positional(0);
    if (!isTemplateId(template)) throw new UsageError(`the name of a template has ${TEMPLATE_RULE}`);
    const isDefined = input.has('defined') || input.texts('config').length > 0;
    if (!isDefined && !input.has('endpoint') && !input.has('command'))
      throw new UsageError(
        'instance register needs --endpoint or --command; --defined, or --config, uses those of the definition of the template',
      );
    const content = isDefined
      ? await serverOf(input, terminal)
      : { instance: await instanceOf(input, terminal) };
    const waitSeconds = input.number('wait', { minimum: 0, maximum: 300 });
    const isRemoved = input.has('remove-on-failure');
    if (isRemoved && waitSeconds === undefined) throw new UsageError('--remove-on-failure requires --wait');
    const gateway = await requireGateway(input, terminal);
    const query = waitSeconds === undefined ? '' : `?wait=${waitSeconds}`;
    const { status, body } = await gateway.ask(`${isDefined ? '/servers' : '/gateway/register'}${query}`, {
      method: 'POST',
      body: { template_name: template, ...content },
      timeoutMs: GATEWAY_ANSWER_MS + (waitSeconds ?? 0) * 1000,
    });

    const record = fields(body);
    const id = String(record.instance_id ?? record.id);
    const what = status === 200 ? 'replaced' : 'registered';
    const state = stateWord(terminal, String(record.state));
    printResult(input, terminal, record, `${id} is ${what} in ${template}: ${state}`);
    for (const warning of warningsOf(body)) terminal.note(`warning: ${printable(warning)}`);
    if (waitSeconds !== undefined && record.healthy !== true) {
      const path = `/gateway/deregister/${encodeURIComponent(template)}/${encodeURIComponent(id)}`;
      // An instance that replaced another stays, because the other one is gone.
      const isNew = status !== 200;
      if (isRemoved && isNew) await gateway.request(path, { method: 'DELETE' });
      const outcome = isRemoved && isNew ? 'it is removed again' : REMAINS;
      throw new CommandFailure(unhealthy(id, record, waitSeconds, outcome));
    }
    const how = `"${commandAt(`connect ${template}`, gateway.url, terminal)}" shows how`;
    if (!input.has('json')) terminal.print(`MCP clients: ${gateway.url}/mcp/${template}; ${how}`);
    return 0;
  },
};

/** The member `instance` of the body of `POST /gateway/register`. */
async function instanceOf(input: CommandInput, { folder }: Terminal) {
  const workingDir = input.text('working-dir');
  return {
    id: input.text('id'),
    endpoint: input.text('endpoint'),
    command: input.text('command'),
    node: input.text('node'),
    // Relative to the user's folder, not to the folder of the gateway.
    working_dir: workingDir === undefined ? undefined : resolve(folder, workingDir),
    env_vars: recordOf(input, 'env'),
    headers: await recordWithFiles(input, 'header', folder, 'NAME=VALUE'),
    auth: await authOf(input, folder),
    era: input.text('era'),
    force: input.switch('force'),
    metadata: recordOf(input, 'metadata'),
    weight: input.number('weight', { minimum: 1, maximum: 1000 }),
  };
}

async function authOf(input: CommandInput, folder: string) {
  const who = input.text('auth');
  const [client_id, secret] = [input.text('client-id'), input.text('client-secret')];
  const scopes = input.text('oauth-scopes');
  if (who === undefined) {
    if ([client_id, secret, scopes].every((text) => text === undefined)) return undefined;
    throw new UsageError('--client-id, --client-secret and --oauth-scopes require --auth');
  }
  if (secret !== undefined && !secret.startsWith('@'))
    throw new UsageError('--client-secret takes @<file>, so that the secret is in no list of processes');
  return definedFields({
    mode: 'oauth',
    who,
    client_id,
    scopes: scopes?.split(','),
    client_secret: secret === undefined ? undefined : await contentOf('client-secret', folder, secret),
  });
}

/** The members of the body of `POST /servers`: the template's definition says how to reach the server. */
async function serverOf(input: CommandInput, terminal: Terminal): Promise<object> {
  const foreign = ['endpoint', 'command', 'id', 'working-dir'].find((name) => input.text(name) !== undefined);
  if (foreign !== undefined)
    throw new UsageError(`--${foreign} cannot be combined with --defined or --config`);
  const { env_vars, headers, auth, era, force, node, metadata, weight } = await instanceOf(input, terminal);
  return {
    config: {
      env_vars,
      headers,
      auth,
      era,
      force,
      node,
      ...(await recordWithFiles(input, 'config', terminal.folder)),
    },
    instance_metadata: { ...metadata, weight },
  };
}

/** The pairs of a repeatable option; undefined without any. */
function recordOf(
  input: CommandInput,
  option: string,
  form = 'KEY=VALUE',
): Readonly<Record<string, string>> | undefined {
  const pairs = [...pairsOf(`--${option}`, input.texts(option), { form })];
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}

/** The pairs of a repeatable option, of which `KEY=@file` takes the value from a file. See `recordOf`. */
async function recordWithFiles(
  input: CommandInput,
  option: string,
  folder: string,
  form?: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const record: Record<string, string> = { ...recordOf(input, option, form) };
  for (const [name, value] of Object.entries(record))
    if (value.startsWith('@')) record[name] = await contentOf(option, folder, value);
  return Object.keys(record).length === 0 ? undefined : record;
}

/** The most bytes of a value in a file: no value of a registration is longer. */
const MAX_VALUE_BYTES = 1024 * 1024;

/** The content of a file. A secret in it stays out of the list of processes, which every user of the machine can read. */
async function contentOf(option: string, folder: string, written: string): Promise<string> {
  const file = written.slice(1);
  try {
    const bytes = await bytesWithin(filePieces(resolve(folder, file)), MAX_VALUE_BYTES);
    if (bytes === undefined)
      throw new UsageError(`--${option}: "${file}" has more than ${MAX_VALUE_BYTES} bytes`);
    // Editors and `echo` end a file with a line break that is not part of the value.
    return bytes.toString('utf8').replace(/[\r\n]+$/, '');
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--${option}: "${file}" cannot be read (${fileFault(error)})`, { cause: error });
  }
}

const REMAINS = 'it stays registered';

function unhealthy(id: string, record: Fields, waitSeconds: number, outcome: string): string {
  const because = shownReasonOf(record) || (record.state === 'starting' ? 'it is still starting' : '');
  if (isMissing(because)) return `${id} ${printable(because)}; ${outcome}`;
  const needsCredentials = typeof record.command !== 'string' && /\b40[13]\b/.test(because);
  const remedy = needsCredentials ? '; give the credentials with --header Authorization=@<file>' : '';
  return `${id} is not healthy after ${waitSeconds} s${because && `: ${printable(because)}`}${remedy}; ${outcome}`;
}

export const instanceDeregister = requestCommand({
  name: 'instance deregister',
  summary: 'Deregister an instance; its calls in flight finish',
  request: (template, id) => ['DELETE', `/gateway/deregister/${template}/${id}`],
  textOf: (template, id) => `${id} is deregistered from ${template}`,
  record: { deregistered: true },
});

export const instanceDrain = requestCommand({
  name: 'instance drain',
  summary: 'Send an instance no new calls until it is resumed or the gateway restarts; it keeps running',
  request: (template, id) => ['POST', `/gateway/instances/${template}/${id}/drain`],
  textOf: (template, id) => `${id} of ${template} gets no new calls until it is resumed`,
  wait: {
    until: 'its calls have ended',
    isReached: ({ in_flight: calls }) => calls === 0,
    textOf: ([template, id]) => `${id} of ${template} is drained: its calls have ended`,
    failureOf: ([template, id], { in_flight: calls }, seconds) =>
      `${id} of ${template} has calls in flight after ${seconds} s: ${calls}; it gets no new ones`,
  },
});

export const instanceResume = requestCommand({
  name: 'instance resume',
  summary: 'Send calls to a drained instance again',
  request: (template, id) => ['POST', `/gateway/instances/${template}/${id}/resume`],
  textOf: (template, id, { state }) => `${id} of ${template} gets calls again: ${state}`,
});

export const instanceRestart = requestCommand({
  name: 'instance restart',
  summary: 'Restart an instance when its calls have ended',
  request: (template, id) => ['POST', `/gateway/instances/${template}/${id}/restart`],
  textOf: (template, id) =>
    `${id} of ${template} restarts when its calls have ended, after 30 s at the latest`,
  wait: {
    until: 'it is healthy again',
    isReached: hasRestarted,
    textOf: ([template, id], record) =>
      `${id} of ${template} is restarted: ${[record.state, shownReasonOf(record)].filter(Boolean).join(', ')}`,
    failureOf: ([, id = ''], record, seconds) => unhealthy(id, record, seconds, REMAINS),
  },
});

/** True when it was opened again: it was not open at first, or was opened since. */
function hasRestarted(record: Fields, first: Fields): boolean {
  const isOpenedOnce = Number(record.restarts) > Number(first.restarts);
  if (isOpen(record)) return isOpenedOnce || !isOpen(first);
  // Only programs count a start that failed. An endpoint has a reason also while its account is not connected.
  return isOpenedOnce && record.state === 'draining' && typeof record.command !== 'string';
}

/** A drained instance stays drained; it has a reason until it is open. */
function isOpen({ state, reason }: Fields): boolean {
  return state === 'healthy' || (state === 'draining' && reason === null);
}

export const instanceSet: Command = {
  name: 'instance set',
  positionals: '<template> <id>',
  summary: 'Change the weight, the metadata or the protocol era of an instance',
  options: {
    '--weight <number>': 'Share of the calls with weighted balancing, 1 to 1000',
    '--metadata <KEY=VALUE>...': 'A note kept with the instance; all notes are replaced by those given',
    '--era <era>': 'auto, legacy or modern: the protocol era that is spoken with it; a change opens it again',
    ...CLIENT_OPTIONS,
  },
  examples: [
    'instance set search search-1 --weight 5',
    'instance set search search-1 --metadata zone=a',
    'instance set search search-1 --era legacy',
  ],
  run: async (input, terminal) => {
    const [template, id] = [input.positional(0), input.positional(1)];
    const weight = input.number('weight', { minimum: 1, maximum: 1000 });
    const body = definedFields({ weight, metadata: recordOf(input, 'metadata'), era: input.text('era') });
    if (Object.keys(body).length === 0)
      throw new UsageError('nothing to change: give --weight, --metadata or --era');
    const gateway = await requireGateway(input, terminal);
    const change = () => gateway.request(instancePath(template, id), { method: 'PATCH', body });
    const record = fields(await ofTemplate(gateway, template, change, { id }));
    const rows = [['weight', record.weight], ['era', record.era ?? 'auto'], ...metadataRows(record)] as const;
    return printResult(input, terminal, record, () => detailLines(terminal, rows));
  },
};
