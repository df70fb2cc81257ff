// The differences between this node and the others that should not be: a way to each other, the secret, the version,
// and the settings marked `mustAgree`. The others are asked for their settings when a client asks for the
// differences. No answer has the value of a setting. Source: ADR 172.

import Type from 'typebox';
import { ANONYMOUS } from '../../domain/accounts/principal.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { foreignNodes, otherDatabases, otherVersions, silentNodes } from '../../domain/nodes/nodes.ts';
import { whenKnown } from '../../domain/time/when-known.ts';
import { text } from '../records/schemas.ts';
import type { Services } from '../services.ts';

/** Field of answers about the nodes. */
export const NodeWarnings = Type.Array(
  text('the setting sessions.max of the node "node-b" is not that of this node'),
  {
    description:
      'One line for each node with another secret, version or database, or that does not answer, and for each setting that differs from that of this node',
  },
);

const PEER_SETTINGS = compileShape(
  Type.Object({ settings: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })) }),
  'body',
);

interface Agreement {
  readonly warnings: string[];
  /** The nodes whose settings are not known. */
  readonly partial: readonly string[];
}

/** The agreement of the nodes. Other nodes are asked as this node, not as the caller, since the answer has no values. */
export function agreementOf({
  nodes,
  otherMembers,
  settings,
}: Pick<Services, 'nodes' | 'otherMembers' | 'settings'>): Agreement | Promise<Agreement> {
  const all = nodes();
  const warnings = [...foreignNodes(all), ...otherVersions(all), ...otherDatabases(all), ...silentNodes(all)];
  if (otherMembers.isAlone) return { warnings, partial: [] };
  const question = { target: '/gateway/settings', principal: ANONYMOUS, shape: PEER_SETTINGS };
  return whenKnown(otherMembers.ask(question), ({ answers, partial }) => {
    const common = settings.filter(({ setting }) => setting?.mustAgree);
    for (const [node, { settings: others }] of [...answers].sort()) {
      const there = new Map(others.map(({ name, value }) => [name, value]));
      // A node of another version may lack a setting.
      const differing = common.filter(({ name, value }) => (there.get(name) ?? value) !== value);
      for (const { name } of differing)
        warnings.push(`the setting ${name} of the node "${node}" is not that of this node`);
    }
    return { warnings, partial };
  });
}
