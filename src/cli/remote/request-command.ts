// Commands that send one request about a template or an instance and print its answer.

import { definedFields } from '../../domain/json/json.ts';
import type { Command } from '../command.ts';
import { printResult } from '../output.ts';
import { type Fields, fields } from './answers.ts';
import { CLIENT_OPTIONS, ofTemplate, requireGateway } from './remote.ts';

interface RequestCommand extends Pick<Command, 'name' | 'positionals' | 'summary'> {
  /** The method and the path of the request; the arguments are encoded. */
  readonly request: (template: string, id: string) => readonly ['POST' | 'DELETE', path: string];
  readonly textOf: (template: string, id: string, answer: Fields) => string;
  /** The record that --json prints, with the names, in place of the answer. */
  readonly record?: Fields;
}

/** A command that sends one request about an instance or a template. */
export function requestCommand(definition: RequestCommand): Command {
  const { positionals = '<template> <id>', request, textOf, record, ...rest } = definition;
  const example = positionals.replace('<template>', 'search').replace('<id>', 'search-1');
  return {
    ...rest,
    positionals,
    options: CLIENT_OPTIONS,
    examples: [`${rest.name} ${example}`],
    run: async (input, terminal) => {
      const [template = '', id] = input.positionals;
      const gateway = await requireGateway(input, terminal);
      const [method, path] = request(encodeURIComponent(template), encodeURIComponent(id ?? ''));
      const answer = fields(
        await ofTemplate(gateway, template, () => gateway.request(path, { method }), { id }),
      );
      const names = { template_name: template, ...definedFields({ instance_id: id }) };
      const shown = record === undefined ? answer : { ...names, ...record };
      return printResult(input, terminal, shown, textOf(template, id ?? '', answer));
    },
  };
}
