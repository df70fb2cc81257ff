// The servers of the demo: the selected templates, the number of their instances, and their registrations.

import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { FoundInstance } from '../../domain/instances/found-instances.ts';
import type { InstanceInput } from '../../domain/instances/instance.ts';
import { defaultTransport } from '../../domain/instances/transport-kinds.ts';
import { readCatalogue } from '../../templates/catalogue.ts';
import type { TemplateDefinition } from '../../templates/definition.ts';
import { instanceInputOf, launchOf } from '../../templates/launch.ts';

/** The template with two instances over stdio and one over Streamable HTTP. Each other template has one instance. */
export const SHOWCASE = 'everything';

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

function plan(
  template: TemplateDefinition,
  scratch: string,
): Promise<Pick<FoundInstance, 'template' | 'id' | 'input'>[]> {
  const numbers = template.id === SHOWCASE ? [1, 2, 3] : [1];
  return Promise.all(
    numbers.map(async (number) => {
      const id = `${template.id}-${number}`;
      const folder = join(scratch, id);
      await mkdir(folder, { recursive: true });
      await writeFile(
        join(folder, 'welcome.txt'),
        'This folder belongs to the demo and is deleted with it.\n',
      );
      // A package that is installed beside the gateway is not downloaded.
      const input = launchOf({ args: [], ...instanceInputOf(template, folder) });
      return { template: template.id, id, input: { ...(number < 3 ? input : await overHttp(input)), id } };
    }),
  );
}

/** A command together with an endpoint: the gateway runs the program and tells it the port of the endpoint in PORT. */
async function overHttp(input: InstanceInput): Promise<InstanceInput> {
  const args = input.args?.map((word) => (word === 'stdio' ? 'streamableHttp' : word)) ?? [];
  const endpoint = `http://127.0.0.1:${await freePort()}/mcp`;
  return { ...input, args, transport: defaultTransport({ endpoint }), endpoint };
}

/** A free port of this machine. Nothing reserves it: use it soon. */
async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  await once(server.close(), 'close');
  if (typeof address === 'object' && address !== null) return address.port;
  throw new Error('the system gave no port');
}
