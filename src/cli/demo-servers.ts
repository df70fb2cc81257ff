// The servers of the demo: the selected templates, the number of their instances, and their registrations.
// templates/<id>/template.json defines the program of a template; demo.ts starts and watches it.

import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { InstanceInput } from '../domain/instance.ts';
import { readCatalogue } from '../templates/catalogue.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import { instanceInputOf, resolveLaunch } from '../templates/launch.ts';

export interface DemoServer {
  readonly template: string;
  readonly id: string;
  readonly input: InstanceInput;
}

/** Templates that also run over Streamable HTTP, and the word of their command that selects it. */
const OVER_HTTP: Readonly<Record<string, { readonly from: string; readonly to: string }>> = {
  everything: { from: 'stdio', to: 'streamableHttp' },
};
const STDIO_INSTANCES: Readonly<Record<string, number>> = { everything: 2 };

/**
 * Plans the servers and makes a folder below `scratch` for each: those of all templates in the folder `templates`, by
 * default of the bundled templates with the tag `demo`. `problems` has a line for each server that could not be planned.
 */
export async function planDemo(scratch: string, templates?: string) {
  const catalogue = await readCatalogue(templates);
  const planned = await Promise.all(
    catalogue.templates
      .filter(({ tags }) => templates !== undefined || tags?.includes('demo'))
      .map((template) => plan(template, scratch)),
  );
  return { servers: planned.flat(), problems: catalogue.problems };
}

async function plan(template: TemplateDefinition, scratch: string): Promise<DemoServer[]> {
  const stdio = STDIO_INSTANCES[template.id] ?? 1;
  const total = stdio + (template.id in OVER_HTTP ? 1 : 0);
  return Promise.all(
    Array.from({ length: total }, async (_, index) => {
      const id = `${template.id}-${index + 1}`;
      const folder = await makeFolder(scratch, id);
      const input = withLocalPackage(instanceInputOf(template, folder));
      return {
        template: template.id,
        id,
        input: { ...(index < stdio ? input : await overHttp(template.id, input)), id },
      };
    }),
  );
}

/** Replaces a download by the package that is installed beside the gateway, if any. */
function withLocalPackage(input: InstanceInput): InstanceInput {
  if (input.command === undefined) return input;
  const { command, args } = resolveLaunch({ command: input.command, args: input.args ?? [] });
  return { ...input, command, args: [...args] };
}

/** A command together with an endpoint: the gateway runs the program and tells it the port of the endpoint in PORT. */
async function overHttp(template: string, input: InstanceInput): Promise<InstanceInput> {
  const { from, to } = OVER_HTTP[template] ?? {};
  const args = (input.args ?? []).map((word) => (word === from && to !== undefined ? to : word));
  return { ...input, args, transport: 'http', endpoint: `http://127.0.0.1:${await freePort()}/mcp` };
}

async function makeFolder(scratch: string, id: string): Promise<string> {
  const folder = join(scratch, id);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'welcome.txt'), 'This folder belongs to the demo and is deleted with it.\n');
  return folder;
}

/** A free port of this machine. Nothing reserves it: use it soon. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const server = createServer();
  await once(server.listen(0, host), 'listening');
  const address = server.address();
  await once(server.close(), 'close');
  if (typeof address === 'object' && address !== null) return address.port;
  throw new Error('the system gave no port');
}
