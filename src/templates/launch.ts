// From a template definition to a program: the input that registers an instance, and the program that replaces `npx -y package`
// when that package is installed beside the gateway. Then nothing is downloaded, no wrapper process remains, and it works on
// Windows, where npx is a script and no program. It creates no folder and registers nothing; the transports start the process.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { commandWords } from '../domain/instances/command.ts';
import type { InstanceDefinition, InstanceInput } from '../domain/instances/instance.ts';
import { definedFields, isJsonObject, type JsonObject } from '../domain/json/json.ts';
import type { ActiveDefinition } from './active-definitions.ts';
import { mappedFields, type SettingValues, secretVariables, withDefaults } from './config-schema.ts';
import { fillPlaceholders, hasPlaceholder, type TemplateDefinition } from './definition.ts';

/**
 * The input that registers an instance of a template, with placeholders filled. A command is split into words first,
 * so a folder with spaces in its path stays one word. `settings` and the defaults of others become words after those
 * of the command, variables and headers. Only a command gets environment and words, only an endpoint headers.
 */
export function instanceInputOf(
  template: ActiveDefinition,
  scratch: string,
  settings: SettingValues = {},
): InstanceInput {
  const { endpoint, transport, environment = {} } = template;
  // The command of an image runs in its containers, which the gateway does not start.
  const command = template.docker_image === undefined ? template.command : undefined;
  const fill = (text: string) => fillPlaceholders(text, scratch);
  const filled = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]));
  const mapped = mappedFields(template, withDefaults(template, settings));
  const target = {
    ...definedFields({ endpoint, transport }),
    ...(endpoint === undefined || isEmpty(mapped.headers) ? {} : { headers: filled(mapped.headers) }),
  };
  if (command === undefined) return target;
  const split = commandWords(template);
  const words = 'words' in split ? split.words : []; // reading the definition proved that it can be split
  const [program = '', ...args] = [...words, ...mapped.args].map(fill);
  const variables = filled({ ...environment, ...mapped.env });
  return {
    ...target,
    command: program,
    args,
    ...(isEmpty(variables) ? {} : { env_vars: variables }),
    ...(isEmpty(mapped.secretEnv) ? {} : { secret_env_vars: mapped.secretEnv }),
  };
}

function isEmpty(texts: object): boolean {
  return Object.keys(texts).length === 0;
}

interface LaunchOptions {
  /** The folder from which node_modules folders are searched upwards. Default: that of this file. */
  readonly from?: string;
  /** The Node that runs the program. Default: this one. */
  readonly node?: string;
}

/**
 * The program to start for a command. `npx -y <package>[@version] ...` becomes Node with the package's
 * program when the package is installed and, if a version is given, in exactly that version. Anything else
 * (other options of npx, `@latest`, a program that Node alone does not run) stays unchanged.
 */
export function launchOf<L extends Pick<InstanceDefinition, 'command' | 'args'>>(
  launch: L,
  options: LaunchOptions = {},
): L {
  const { from = import.meta.dirname, node = process.execPath } = options;
  const [yes, wanted, ...rest] = launch.args;
  const isNpx = /^npx(\.cmd)?$/i.test(launch.command ?? '') && (yes === '-y' || yes === '--yes');
  const { name, version } =
    /^(?<name>(@[\w~][\w.~-]*\/)?[\w~][\w.~-]*)(@(?<version>.+))?$/.exec(wanted ?? '')?.groups ?? {};
  // npx removes a `--` after the package from the arguments; its rules are best left to npx.
  if (!isNpx || name === undefined || rest[0] === '--') return launch;
  const program = findProgram(name, version, from);
  return program === undefined ? launch : { ...launch, command: node, args: [program, ...rest] };
}

/**
 * Adds the variables of the template's `environment` that the instance does not set, except those with a
 * placeholder, which has no value for an instance that was registered by its command. The variables of its sensitive
 * settings are secret.
 */
export function withTemplateEnvironment(
  definition: InstanceDefinition,
  template: Pick<TemplateDefinition, 'environment' | 'config_schema'>,
): InstanceDefinition {
  const { environment = {} } = template;
  const defaults = Object.entries(environment).filter(([, value]) => !hasPlaceholder(value));
  const env = { ...Object.fromEntries(defaults), ...definition.env };
  return { ...definition, env, secretEnv: [...(definition.secretEnv ?? []), ...secretVariables(template)] };
}

function findProgram(name: string, version: string | undefined, from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const home = join(folder, 'node_modules', name);
    const manifest = readManifest(join(home, 'package.json'));
    if (manifest !== undefined) {
      const program = programOf(name, manifest);
      const path = join(home, program ?? '');
      const isForNode = program !== undefined && /\.[cm]?js$/.test(path) && existsSync(path);
      return isForNode && (version === undefined || version === manifest.version) ? path : undefined;
    }
    if (dirname(folder) === folder) return undefined;
  }
}

function readManifest(path: string): JsonObject | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return isJsonObject(manifest) ? manifest : undefined;
  } catch {
    return undefined; // not installed here, or broken: left to npx
  }
}

/** The program that npx would choose: the only one, else the one named like the package without its scope. */
function programOf(name: string, { bin }: JsonObject): string | undefined {
  if (typeof bin === 'string') return bin;
  if (!isJsonObject(bin)) return undefined;
  const programs = [...new Set(Object.values(bin))];
  const chosen = programs.length === 1 ? programs[0] : bin[name.replace(/^@.*\//, '')];
  return typeof chosen === 'string' ? chosen : undefined;
}
