// The environment of a program, and which variables of the gateway it lacks. Reasons name variables, never their values.
// Source: ADR 52.

import { PASS_ENV } from '../../domain/command.ts';

/** The variables of an instance, or those of the gateway. */
type Variables = Readonly<Record<string, string | undefined>>;

const COMMON_VARIABLES = ['PATH', 'HOME', 'LANG'];
const WINDOWS_VARIABLES = 'SystemRoot ComSpec PATHEXT TEMP TMP USERPROFILE APPDATA LOCALAPPDATA'.split(' ');

/** `user:password@` at the front, or behind a scheme. */
const CREDENTIALS = /^(?:[a-z][a-z0-9+.-]*:\/\/)?[^/\\]*@/i;

/**
 * The environment of a program: PATH, HOME and LANG (and what Windows programs cannot do without), what `passEnv` names, then
 * its own variables. Secrets of the gateway stay with the gateway: without `passEnv` those of PASS_ENV are passed, and of these
 * no URL with credentials.
 */
export function childEnvironment(
  own: Readonly<Record<string, string>>,
  source: Variables = process.env,
  platform: NodeJS.Platform = process.platform,
  passEnv?: readonly string[],
): Record<string, string> {
  const environment: Record<string, string> = {};
  const always = platform === 'win32' ? [...COMMON_VARIABLES, ...WINDOWS_VARIABLES] : COMMON_VARIABLES;
  for (const name of [...always, ...(passEnv ?? PASS_ENV)]) {
    const value = source[name];
    if (value === undefined) continue;
    if (always.includes(name) || passEnv !== undefined || !CREDENTIALS.test(value)) environment[name] = value;
  }
  return { ...environment, ...own };
}

/** Names of PASS_ENV that the gateway has and a program with these variables does not get, in either case of letters. */
export function lackedVariables(
  own: Readonly<Record<string, string>>,
  passEnv?: readonly string[],
  source: Variables = process.env,
): string[] {
  const given = Object.keys(childEnvironment(own, source, process.platform, passEnv));
  const names = new Set(given.map((name) => name.toUpperCase()));
  return PASS_ENV.filter((name) => source[name] && !names.has(name.toUpperCase()));
}
