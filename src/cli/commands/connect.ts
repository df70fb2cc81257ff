// `stagedoor connect`: the configuration of MCP clients for a template, from the table of clients in src/connect/.

import {
  type ConnectKind,
  locationText,
  overlongTools,
  stepsOf,
  targetOf,
} from '../../connect/connect-kind.ts';
import {
  ALL_TEMPLATES,
  CLIENT_TRANSPORTS,
  type ConnectTarget,
  type ConnectTargets,
  type EndpointTarget,
} from '../../connect/connect-target.ts';
import { definedFields } from '../../domain/json/json.ts';
import { didYouMean } from '../../domain/nearest.ts';
import { PASSWORD_OPTION } from '../accounts/account-client.ts';
import { readPassword } from '../accounts/account-options.ts';
import { namedEnvironment } from '../accounts/request-credentials.ts';
import { type Command, type CommandInput, pairsOf } from '../command.ts';
import type { Verification } from '../connect/verify.ts';
import type { Person } from '../connect/verify-sign-in.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { indentedJson, printable } from '../output.ts';
import { resultWriter } from '../private-file.ts';
import { CLIENT_OPTIONS } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';
import { type Terminal, terminalWith } from '../terminal.ts';

export const connect: Command = {
  name: 'connect',
  positionals: '[template]',
  summary:
    'Show how MCP clients connect to a template, or to all templates at once: a snippet, its file and the steps',
  options: {
    '--llm <kind>': 'Only this client, such as claude-code, vscode, curl; default all',
    '--stdio':
      'The client starts a program: that of the template, else a bridge; the default of clients without a sign-in',
    '--http': 'The client sends requests to the gateway',
    '--env <KEY=VALUE>...':
      'Variable for the program; NAME without a value names a gateway of environments.json',
    '--key <key>':
      'Write this API key into the snippet, in place of STAGEDOOR_API_KEY; - reads standard input',
    '--verify':
      'Connect as the snippet does, list the tools and report them; exit code 1 when it does not work',
    '--user <name>':
      'With --verify, where clients sign in by a browser: sign in as this user and allow it; ends the grant afterwards',
    ...PASSWORD_OPTION,
    '--write': "Show the changes to the client's own file, ask, and write it; a copy of the old file is kept",
    '--remove': "Remove the entry from the client's own file, in the same way",
    '--yes': 'Write without asking',
    '--file <path>': "The client's file; default where the client keeps it",
    '--output <file>': 'Write the snippet to a file that only its owner can read',
    ...CLIENT_OPTIONS,
    '--trust':
      'Use the program and the address that the gateway names, also if they are not known here; send the key to this http URL without a proof, now and later',
  },
  examples: [
    'connect',
    'connect everything',
    'connect everything --llm claude-code --http',
    'connect everything --llm vscode --verify',
    'connect everything --llm cursor --write --yes',
    'connect everything --llm nodejs --output client.mjs',
  ],
  run: async (input, terminal) => {
    const { CONNECT_KINDS } = await import('../../connect/index.ts');
    const kinds = kindsFor(input, CONNECT_KINDS);
    checkFileOptions(input);
    const { changeEntry } = await import('../connect/config-file.ts');
    const [kind] = kinds;
    if (input.has('remove') && kind !== undefined) {
      await changeEntry({ kind, template: entryName(input), target: undefined }, input, terminal);
      return 0;
    }
    const notes: string[] = [];
    const { targets, transport, ...key } = await targetsFor(input, terminal, notes);
    const planned = integrationsOf(kinds, targets, transport);
    // The notes are about programs that clients start.
    if (planned.some(({ target }) => target.transport === 'stdio'))
      for (const text of notes) terminal.note(text);
    const [only] = planned;
    const isWritten = input.has('write') && only !== undefined;
    const isUnread = input.has('yes') || input.has('user');
    if (isUnread && !input.has('trust')) for (const each of planned) refuseOtherAddress(each.target);
    if (isWritten) await changeEntry({ ...only, template: entryName(input) }, input, terminal);
    const output = input.text('output');
    const write = resultWriter(terminal, output);
    const person = await personOf(input, terminal, planned);
    const integrations = input.has('verify')
      ? await verifyAll(planned, terminalWith(terminal, key), person)
      : planned;
    if (isWritten) return report(integrations, input, terminal);
    write(textOf(integrations, input, terminal, output !== undefined));
    return report(integrations, input, terminal);
  },
};

/** The person whose sign-in is verified; undefined without --user. Throws UsageError where nothing signs in. */
async function personOf(
  input: CommandInput,
  terminal: Terminal,
  planned: readonly Integration[],
): Promise<Person | undefined> {
  const username = input.text('user');
  if (username === undefined && !input.has('password')) return undefined;
  if (username === undefined) throw new UsageError('--password requires --user <name>');
  if (!input.has('verify')) throw new UsageError('--user requires --verify');
  if (!planned.some(({ target }) => isSignIn(target)))
    throw new UsageError('--user is for clients that sign in by a browser, and none of these does here');
  const question = `Password of ${username}`;
  return { username, password: await readPassword(input, terminal, { question, isNew: false }) };
}

function isSignIn(target: ConnectTarget): target is EndpointTarget {
  return target.transport === 'http' && target.isSignIn === true;
}

/**
 * Refuses an address that the gateway names and that is not its own. Clients sign in there, and over plain HTTP any
 * program may be the gateway: such an address is neither written nor gets a password unless the user has seen it.
 * Throws CommandFailure.
 */
function refuseOtherAddress(target: ConnectTarget): void {
  if (!isSignIn(target) || target.url.startsWith('https:')) return;
  const { url, endpoint } = target;
  if (new URL(endpoint).origin === new URL(url).origin) return;
  throw new CommandFailure(
    `${url} names ${endpoint} as its address, which is another one: name the gateway by that one (--url), or add --trust`,
  );
}

/** Checks the options that --write and --remove require or exclude. Throws UsageError. */
function checkFileOptions(input: CommandInput): void {
  input.refuseBoth('write', 'remove');
  const change = ['write', 'remove'].find((name) => input.has(name));
  if (change === undefined) {
    const orphan = ['yes', 'file'].find((name) => input.has(name));
    if (orphan !== undefined) throw new UsageError(`--${orphan} requires --write or --remove`);
    return;
  }
  if (!input.has('llm')) throw new UsageError(`--${change} requires --llm <kind>`);
  input.refuseBoth(change, 'output');
  input.refuseBoth(change, 'json');
  if (change === 'write') return;
  for (const name of ['stdio', 'http', 'env', 'key', 'verify', 'url']) input.refuseBoth(change, name);
}

interface Integration {
  readonly kind: ConnectKind;
  readonly target: ConnectTarget;
  /** The outcome of the verification, if there was one. */
  readonly outcome?: Verification | CommandFailure | undefined;
}

function entryName(input: CommandInput): string {
  return input.positionals[0] ?? ALL_TEMPLATES;
}

/**
 * The kinds of clients for the input. Requests to the HTTP API name one template, so all templates together need a
 * client of MCP.
 */
function kindsFor(input: CommandInput, all: readonly ConnectKind[]): readonly ConnectKind[] {
  const kinds = kindsOf(input, all);
  if (input.positionals[0] !== undefined) return kinds;
  const usable = kinds.filter(({ usesApi = false }) => !usesApi);
  if (usable.length > 0) return usable;
  throw new UsageError(`${kinds[0]?.title} calls the tools of one template: name it`);
}

function kindsOf(input: CommandInput, kinds: readonly ConnectKind[]): readonly ConnectKind[] {
  const name = input.text('llm');
  if (name === undefined) return kinds;
  const kind = kinds.find((each) => each.name === name);
  if (kind !== undefined) return [kind];
  const names = kinds.map((each) => each.name);
  const guess = didYouMean(name, names);
  throw new UsageError(
    `--llm must be one of ${names.join(', ')}, not "${name}"${guess === undefined ? '' : `; ${guess}`}`,
  );
}

async function targetsFor(input: CommandInput, terminal: Terminal, notes: string[]) {
  input.refuseBoth('stdio', 'http');
  const transport = CLIENT_TRANSPORTS.find((name) => input.has(name));
  const words = input.texts('env');
  const assignments = words.filter((word) => word.includes('='));
  const variables = Object.fromEntries(pairsOf('--env', assignments, { pattern: VARIABLE }));
  const [name, second] = words.filter((word) => !assignments.includes(word));
  if (second !== undefined)
    throw new UsageError(`--env can name only one environment, not both "${name}" and "${second}"`);
  if (transport === 'http' && Object.keys(variables).length > 0) {
    throw new UsageError('--env KEY=VALUE cannot be combined with --http: only a program has variables');
  }
  const { findTargets } = await import('../connect/find-targets.ts');
  if (name !== undefined && input.has('url')) {
    throw new UsageError('--url cannot be combined with --env NAME: both name a gateway');
  }
  const named = namedEnvironment(name, terminal.env);
  const { env, keyVariable: variable = 'STAGEDOOR_API_KEY' } = named;
  const value = await apiKeyOption(input, terminal);
  const given = { env: { ...env, STAGEDOOR_API_KEY: value }, keySource: '--key' };
  const { env: envWithKey, keySource } = value === undefined ? named : given;
  const finder = env.STAGEDOOR_API_KEY ? named : { env: envWithKey, keySource };
  const gateway = await requireGateway(input, terminalWith(terminal, finder));
  const key = { variable, ...definedFields({ value }) };
  const isTrusted = input.has('trust');
  const note = (text: string) => void notes.push(text);
  const choice = { key, env: variables, environment: name, isTrusted, note };
  const found = await findTargets(gateway, input.positionals[0], choice);
  // A key or variables that were named belong into the snippet.
  const isNamed = value !== undefined || words.length > 0;
  const targets = isNamed ? { ...found, signIn: undefined } : found;
  return { targets, transport, env: envWithKey, keySource };
}

const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s;

async function apiKeyOption(input: CommandInput, terminal: Terminal): Promise<string | undefined> {
  const written = input.text('key');
  if (written === undefined) return undefined;
  if (written !== '-') {
    terminal.note(
      'warning: a key on the command line can be read by other users; --key - reads standard input',
    );
  }
  const key = written === '-' ? await terminal.readLine() : written;
  if (key === undefined || !/^[\x21-\x7e]+$/.test(key)) throw new UsageError('--key is not an API key');
  return key;
}

/** `wanted`: the transport of --stdio or --http. */
function integrationsOf(
  kinds: readonly ConnectKind[],
  targets: ConnectTargets,
  wanted: ConnectTarget['transport'] | undefined,
): readonly Integration[] {
  const integrations = kinds.flatMap((kind) => {
    const target = targetOf(kind, targets, wanted);
    return target === undefined ? [] : [{ kind, target }];
  });
  if (integrations.length > 0) return integrations;
  throw new UsageError(`${kinds[0]?.title} cannot use --${wanted}`);
}

function textOf(
  integrations: readonly Integration[],
  input: CommandInput,
  terminal: Terminal,
  isFile: boolean,
): string {
  if (input.has('json')) {
    return indentedJson({ template: input.positionals[0] ?? null, integrations: integrations.map(recordOf) });
  }
  const [only] = integrations;
  if (isFile && only !== undefined && integrations.length === 1) return only.kind.snippet(only.target);
  return integrations.map((each) => description(each, terminal)).join('\n\n\n');
}

function description({ kind, target }: Integration, { paint }: Terminal): string {
  const { title, name, documentation, troubleshooting } = kind;
  const steps = stepsOf(kind, target).map((step, index) => `${index + 1}. ${step}`);
  return [
    paint('bold', `${title} (${name}, ${target.transport})`),
    kind.snippet(target),
    ...(kind.file === undefined ? [] : [`File: ${locationText(kind.file.locations)}`]),
    ['Steps:', ...steps].join('\n'),
    ['If it does not work:', ...troubleshooting.map((hint) => `- ${hint}`)].join('\n'),
    paint('dim', `Its own documentation: ${documentation.join(' ')}`),
  ].join('\n\n');
}

function recordOf({ kind, target, outcome }: Integration): object {
  const { name, title, language, troubleshooting, documentation, file } = kind;
  const place =
    target.transport === 'http'
      ? { endpoint: target.endpoint }
      : { program: target.program, command: target.command, args: target.args };
  const verified =
    outcome instanceof CommandFailure
      ? { works: false, reason: outcome.message }
      : { works: true, ...outcome };
  return {
    kind: name,
    title,
    transport: target.transport,
    ...place,
    language,
    snippet: kind.snippet(target),
    ...(file === undefined ? {} : { file: file.locations }),
    steps: stepsOf(kind, target),
    troubleshooting,
    documentation,
    ...(outcome && { verified }),
  };
}

async function verifyAll(
  integrations: readonly Integration[],
  terminal: Pick<Terminal, 'busy' | 'env' | 'keySource' | 'folder'>,
  person: Person | undefined,
): Promise<readonly Integration[]> {
  const { verify, verifyApi } = await import('../connect/verify.ts');
  const { verifySignIn } = await import('../connect/verify-sign-in.ts');
  const wayOf = ({ kind, target }: Integration) =>
    kind.usesApi ? 'api' : isSignIn(target) ? 'sign-in' : target.transport;
  const outcomes = new Map<string, Verification | CommandFailure>();
  for (const each of integrations) {
    if (outcomes.has(wayOf(each))) continue;
    const { target, kind } = each;
    const begun = terminal.busy(`verifying ${kind.name}`, () => {
      if (kind.usesApi) return verifyApi(target, terminal);
      return isSignIn(target) ? verifySignIn(target, person) : verify(target, terminal);
    });
    const outcome = await begun.catch((error: unknown) => {
      if (error instanceof CommandFailure) return error;
      throw error;
    });
    outcomes.set(wayOf(each), outcome);
  }
  return integrations.map((each) => ({ ...each, outcome: outcomes.get(wayOf(each)) }));
}

function report(integrations: readonly Integration[], input: CommandInput, terminal: Terminal): number {
  for (const { kind, target, outcome } of integrations) {
    const what = `${kind.name} (${target.transport})`;
    if (outcome instanceof CommandFailure)
      terminal.complain(`${what} does not work: ${printable(outcome.message)}`);
    else if (outcome !== undefined && !input.has('json')) {
      const { server, protocolVersion, tools, ms, until } = outcome;
      const names = tools.length > NAMED_TOOLS ? [...tools.slice(0, NAMED_TOOLS), '…'] : tools;
      const list = tools.length === 0 ? 'no tools' : `${tools.length} tools (${names.join(', ')})`;
      const seen = server === undefined ? [] : [server, `MCP ${protocolVersion}`];
      const how = until === undefined ? [...seen, list] : [`as far as ${until}`];
      terminal.print(printable(`${what} works: ${[...how, `${ms} ms`].join(', ')}`));
      const long = overlongTools(kind, target.template, tools);
      if (long.length > 0) terminal.complain(printable(`warning: ${overlong(kind, long)}`));
    }
  }
  return integrations.some(({ outcome }) => outcome instanceof CommandFailure) ? 1 : 0;
}

function overlong({ title, toolNames }: ConnectKind, tools: readonly string[]): string {
  const names = [...tools.slice(0, NAMED_TOOLS), ...(tools.length > NAMED_TOOLS ? ['…'] : [])].join(', ');
  const remedy = 'a view with a smaller name_length, or with new names, shortens them';
  return `with the prefix of ${title} these tools have more than ${toolNames?.most} characters: ${names}; ${remedy}`;
}

const NAMED_TOOLS = 8;
