// Named gateways of one person: the file environments.json beside the tokens, written by hand. `--env NAME` reads it.
//
//   { "prod": { "url": "https://mcp.example.com", "key_variable": "PROD_KEY" }, "lab": { "url": "http://lab:8080", "key": "sd_..." } }

import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { nearMiss } from '../../config/nearest.ts';
import { fields } from '../answers.ts';
import { UsageError } from '../failures.ts';
import { credentialsPath } from './credentials-file.ts';

/** One named gateway. */
export interface NamedEnvironment {
  readonly url: string;
  /** The variable that holds the key. */
  readonly keyVariable?: string;
  /** The key: of the file, or of the variable. */
  readonly key?: string;
}

/** Throws UsageError when there is no such environment, or the file cannot be read. */
export function namedEnvironment(
  name: string,
  env: Readonly<Record<string, string | undefined>>,
): NamedEnvironment {
  const path = join(dirname(credentialsPath(env)), 'environments.json');
  const all = read(path);
  const { url, key, key_variable: keyVariable } = fields(Object.hasOwn(all, name) ? all[name] : undefined);
  if (typeof url !== 'string') {
    const meant = nearMiss(name, Object.keys(all));
    throw new UsageError(
      `there is no environment "${name}" with a url in ${path}${meant === undefined ? '' : `; did you mean "${meant}"?`}`,
    );
  }
  if (key !== undefined && isOpen(path)) {
    throw new UsageError(`${path} holds a key and can be read by other users: run "chmod 600 ${path}"`);
  }
  const held = typeof keyVariable === 'string' ? env[keyVariable] : key;
  return {
    url,
    ...(typeof keyVariable === 'string' ? { keyVariable } : {}),
    ...(typeof held === 'string' && held !== '' ? { key: held } : {}),
  };
}

/** The variables of a command for this environment: its URL and key in place of those that are set. */
export function withEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  { url, key }: NamedEnvironment,
): Readonly<Record<string, string | undefined>> {
  const { STAGEDOOR_TOKEN: _, STAGEDOOR_API_KEY: __, ...others } = env;
  return { ...others, STAGEDOOR_URL: url, STAGEDOOR_API_KEY: key };
}

/** On Windows the folder of the person is closed to others. */
function isOpen(path: string): boolean {
  return process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0;
}

function read(path: string): Readonly<Record<string, unknown>> {
  try {
    return fields(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    const reason =
      code === 'ENOENT'
        ? 'there is no such file'
        : code === undefined
          ? 'it is not JSON'
          : `cannot be read (${code})`;
    throw new UsageError(`--env takes KEY=VALUE, or a name in ${path}: ${reason}`, { cause: error });
  }
}
