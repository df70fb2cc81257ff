// Every command with its arguments, options and examples, from the table of commands.

import { type Command, type OptionDefinition, optionFlag, optionsOf } from '../../src/cli/command.ts';
import { COMMAND_BLOCKS, COMMANDS } from '../../src/cli/commands/index.ts';
import { usages } from '../../src/cli/help.ts';
import { CLIENT_OPTIONS } from '../../src/cli/remote/client-options.ts';
import { SETTING_OPTIONS } from '../../src/cli/setting-options.ts';
import { code, item, linked, plain, wrap } from './markdown.ts';

const SETTINGS_LINK = 'A flag for each of the [settings](configuration.md#all-settings)';
const ofSettings = new Set(optionsOf({ options: SETTING_OPTIONS }).map(optionFlag));

export function cliReference(): string {
  const blocks = COMMAND_BLOCKS.map(({ title, commands }) => {
    const links = commands.map(({ name }) => `[${code(name)}](#${name.replaceAll(' ', '-')})`);
    return wrap(`**${title}**: ${links.join(', ')}.`);
  });
  return [...blocks, gatewaySection(), ...COMMANDS.map(section)].join('\n\n');
}

/** The options that nearly every command has which talks to a gateway: described once, and named by each of them. */
const GATEWAY_OPTIONS = optionsOf({ options: CLIENT_OPTIONS }).filter(isNotCommon);

function gatewaySection(): string {
  return ['## Options for a gateway', GATEWAY_OPTIONS.map(optionItem).join('\n')].join('\n\n');
}

function gatewayItem(): string {
  const names = GATEWAY_OPTIONS.map(({ flags }) => code(flags));
  return item(`${names.join(', ')}: [options for a gateway](#options-for-a-gateway)`);
}

function isNotCommon(option: OptionDefinition): boolean {
  return optionFlag(option) !== '--quiet';
}

function section(command: Command): string {
  const { name, summary, examples = [] } = command;
  const all = optionsOf(command).filter(isNotCommon);
  const isForGateway = GATEWAY_OPTIONS.every((option) => all.some((each) => isSame(each, option)));
  const own = isForGateway
    ? all.filter((each) => !GATEWAY_OPTIONS.some((option) => isSame(each, option)))
    : all;
  const hasSettings = own.filter((option) => ofSettings.has(optionFlag(option))).length > 10;
  const listed = own.filter((option) => !hasSettings || !ofSettings.has(optionFlag(option)));
  const items = [
    ...listed.map(optionItem),
    ...(hasSettings ? [item(SETTINGS_LINK)] : []),
    ...(isForGateway ? [gatewayItem()] : []),
  ];
  return [
    `## ${name}`,
    wrap(`${plain(summary)}.`),
    `\`\`\`\n${usages(command).join('\n')}\n\`\`\``,
    ...(items.length > 0 ? [items.join('\n')] : []),
    ...(examples.length > 0
      ? [`\`\`\`sh\n${examples.map((example) => `stagedoor ${example}`).join('\n')}\n\`\`\``]
      : []),
  ].join('\n\n');
}

function isSame(one: OptionDefinition, other: OptionDefinition): boolean {
  return one.flags === other.flags && one.description === other.description;
}

function optionItem({ flags, short, description }: OptionDefinition): string {
  const names = short === undefined ? code(flags) : `${code(`-${short}`)}, ${code(flags)}`;
  return item(linked(`${names}: ${plain(description)}`));
}
