// The items of a template that the lists of all templates leave out, in answers about the template.

import Type from 'typebox';
import { mayDo, type Principal } from '../../domain/accounts/principal.ts';
import { callable } from '../../domain/lists/listed-tools.ts';
import type { WithheldItem } from '../../domain/mcp/mcp.ts';
import type { ShownTemplate } from '../../gateway/gateway-types.ts';
import type { Services } from '../services.ts';
import { text } from './schemas.ts';

/** Items of a template that the lists of all templates leave out. */
export const Withheld = Type.Optional(
  Type.Array(Type.Object({ list: text('tools'), name: text('search'), reason: text('its name is empty') }), {
    description:
      'With `gateway:write`, and only if there are any: items that the lists of all templates leave out, because clients could not use them, and tools that wait for approval',
  }),
);

/** The field `withheld`, without tools that the viewer may not call; no field without `gateway:write`. */
export async function withheldFor(
  viewer: Principal,
  template: string,
  { withheld }: Pick<ShownTemplate, 'withheld'>,
  scheduler: Services['scheduler'],
): Promise<{ withheld?: { list: string; name: string; reason: string }[] }> {
  if (withheld.length === 0 || !mayDo(viewer, ['gateway:write'])) return {};
  const toolOf = ({ list, name }: WithheldItem) => (list === 'tools' ? { template, tool: name } : undefined);
  const shown = await callable(viewer, withheld, toolOf, scheduler);
  return shown.length === 0 ? {} : { withheld: [...shown] };
}
