// What every command shares that talks to a running gateway: its options, finding the gateway, and a hint for a template that
// the gateway does not know. HTTP is remote.ts.

import { didYouMean } from '../config/nearest.ts';
import { ownCommand } from '../domain/version.ts';
import { fields } from './answers.ts';
import { usualUrls } from './background/daemon-files.ts';
import type { CommandInput, OptionTable } from './command.ts';
import { CommandFailure, GatewayRefusal } from './failures.ts';
import { namedGateway, type Remote, seekGateway } from './remote.ts';
import type { Terminal } from './terminal.ts';

export const URL_OPTION: OptionTable = {
  '--url <url>':
    'URL of the gateway; default STAGEDOOR_URL, else the gateway in the background here, else http://127.0.0.1:8080 or :8000',
};

/** Appended to the options of each client command. */
export const CLIENT_OPTIONS: OptionTable = {
  ...URL_OPTION,
  '--json': 'Print the answer of the gateway as JSON',
};

/** For commands with many columns; see `table` in output.ts. */
export const WIDE_OPTION: OptionTable = {
  '--wide': 'Show every column, also those that are empty or zero in every row; always so in a pipe',
};

/** The gateway that `--url` or STAGEDOOR_URL names, else the one that answers. Throws CommandFailure when none does. */
export async function gatewayOf(input: CommandInput, terminal: Terminal): Promise<Remote> {
  const remote = namedGateway(input.text('url'), terminal) ?? (await seekGateway(terminal));
  if (remote !== undefined) return remote;
  throw new CommandFailure(
    `no gateway answers at ${usualUrls(terminal).join(' or ')}; ` +
      `start one with "${ownCommand('gateway start')}" or name it with --url`,
  );
}

/** Runs a request about a template. For an unknown name the failure suggests a similar one. */
export async function ofTemplate<T>(gateway: Remote, template: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GatewayRefusal) || error.code !== 'TEMPLATE_NOT_FOUND') throw error;
    const guess = didYouMean(template, (await unlessRefused(templateNames(gateway))) ?? []);
    if (guess === undefined) throw error;
    throw new CommandFailure(`${error.message}; ${guess}`, { cause: error });
  }
}

export async function templateNames(gateway: Remote): Promise<readonly string[]> {
  return Object.keys(fields(fields(await gateway.request('/gateway/registry')).templates));
}

/** Undefined when the request fails: for requests whose answer only improves a message. */
export async function unlessRefused<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof CommandFailure) return undefined;
    throw error;
  }
}
