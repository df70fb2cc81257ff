// `stagedoor template search`: servers of a registry that speaks the official API. Only this command, and an import that names a
// server of the registry, asks it.

import { ownCommand } from '../../domain/version.ts';
import { type Command, type CommandInput, JSON_OPTION } from '../command.ts';
import { UsageError } from '../failures.ts';
import { printable, printResult, type TableColumns, table } from '../output.ts';
import { type Fields, objectsOf } from '../remote/answers.ts';
import { readSettings } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';

export const REGISTRY_OPTION = {
  '--registry <url>':
    'Registry with the official API; default registry.url of gateway.yaml or MCP_GATEWAY_REGISTRY_URL',
};

export const templateSearch: Command = {
  name: 'template search',
  positionals: '<words> [...more]',
  summary: 'Search a registry of MCP servers by name; nothing is registered',
  options: {
    ...REGISTRY_OPTION,
    '--limit <number>': 'Most servers, 1 to 500; default 30',
    ...JSON_OPTION,
  },
  examples: ['template search weather --registry http://127.0.0.1:9000'],
  run: async (input, terminal) => {
    const words = input.positionals.join(' ').trim();
    if (words === '') throw new UsageError('name what to search for');
    const most = input.number('limit', { minimum: 1, maximum: 500 }) ?? 30;
    const { searchRegistry } = await import('../import/registry-client.ts');
    const registry = registryOf(input, terminal);
    const servers = await terminal.busy(`waiting for ${registry}`, () =>
      searchRegistry(registry, words, most),
    );
    return printResult(input, terminal, { registry, servers }, () => {
      if (servers.length === 0) return printable(`no server at ${registry} has "${words}" in its name`);
      const from = input.has('registry') ? `--from-registry --registry ${registry}` : '--from-registry';
      const how = `"${ownCommand(`template import <name> ${from}`)}" imports one.`;
      return `${table(terminal, COLUMNS, servers)}\n\n${how}`;
    });
  },
};

const COLUMNS: TableColumns<Fields> = {
  NAME: 'name',
  VERSION: 'version',
  KINDS: ({ packages, remotes }) => {
    const kinds = [
      ...objectsOf(packages).map(({ registryType }) => String(registryType)),
      ...objectsOf(remotes).map(() => 'remote'),
    ];
    return [...new Set(kinds)].join(', ');
  },
  DESCRIPTION: 'description',
};

/** The address without a slash at its end. Throws UsageError. */
export function registryOf(input: CommandInput, terminal: Terminal): string {
  const written = input.text('registry');
  if (written === undefined) return readSettings(input, terminal).registry.url;
  if (/^https?:\/\/[^\s?#@]+$/i.test(written) && URL.canParse(written)) return written.replace(/\/+$/, '');
  throw new UsageError(`--registry must be an http or https URL, not "${written}"`);
}
