// The nodes of the deployment: state, version and load of each, the differences that should not be, and drain and resume.

import { useEffect } from 'preact/hooks';
import { mayWrite } from '../account.ts';
import { change } from '../api.ts';
import { day } from '../format.ts';
import { Cell } from '../parts/cell.tsx';
import { Icon } from '../parts/icon.tsx';
import { attempt } from '../parts/notices.tsx';
import { Badge, type Look } from '../parts/state.tsx';
import { Partial, Reading } from '../parts/status.tsx';
import { nodes, readNodes } from '../store.ts';
import type { GatewayNode } from '../types.ts';

const READ_MS = 5_000;

export function NodesPage() {
  const { answer, error } = nodes.value;
  useEffect(() => {
    void readNodes();
    const timer = setInterval(() => void readNodes(), READ_MS);
    return () => clearInterval(timer);
  }, []);
  const { nodes: records = [], warnings = [], partial = [] } = answer ?? {};
  return (
    <>
      <Partial nodes={partial} />
      <h1>Nodes</h1>
      <Reading what="nodes" isRead={answer !== undefined} error={error} reload={() => void readNodes()} />
      {warnings.length > 0 && (
        <div class="callout warn">
          <Icon name="warn" />
          <ul>
            {warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </div>
      )}
      {records.length > 0 && (
        <div class="panel table nodes">
          <div class="head" aria-hidden="true">
            <span>Node</span>
            <span>State</span>
            <span>Version</span>
            <span>Since</span>
            <span class="number">Programs</span>
            <span class="number">In flight</span>
            <span />
          </div>
          <ul aria-label="Nodes" class="list">
            {records.map((node) => (
              <NodeRow key={node.life} node={node} />
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

const LOOKS: Readonly<Record<GatewayNode['state'], Look>> = {
  live: { tone: 'ok', icon: 'healthy', word: 'Live' },
  slow: { tone: 'warn', icon: 'warn', word: 'Slow' },
  silent: { tone: 'bad', icon: 'bad', word: 'Silent' },
  ended: { tone: 'idle', icon: 'stopped', word: 'Ended' },
  foreign: { tone: 'bad', icon: 'bad', word: 'No member' },
};
const DRAINING: Look = { tone: 'idle', icon: 'draining', word: 'Draining' };

function NodeRow({ node }: { readonly node: GatewayNode }) {
  const { id, state, draining, address, version, since, programs, in_flight } = node;
  return (
    <li>
      <div class="row">
        <div class="cell-name">
          <span class="strong">{id}</span>
          <div class="cut small muted">{address ?? 'no other node reaches it'}</div>
        </div>
        <div>
          <Badge {...(state === 'live' && draining ? DRAINING : LOOKS[state])} />
        </div>
        <Cell name="version">{version}</Cell>
        <Cell name="since">{day(since)}</Cell>
        <Cell name="programs">{programs}</Cell>
        <Cell name="in flight">{in_flight}</Cell>
        <span class="actions end">{mayWrite.value && state !== 'ended' && <DrainButton node={node} />}</span>
      </div>
    </li>
  );
}

function DrainButton({ node: { id, draining } }: { readonly node: GatewayNode }) {
  const [word, command] = draining ? (['Resume', 'resume'] as const) : (['Drain', 'drain'] as const);
  const done = draining
    ? 'takes sessions again.'
    : 'is draining: no new sessions, its others go on elsewhere.';
  const run = async (): Promise<void> => {
    const path = `gateway/nodes/${encodeURIComponent(id)}/${command}`;
    await attempt(() => change('POST', path), `${id} ${done}`);
    await readNodes();
  };
  return (
    <button type="button" class="small" aria-label={`${word} ${id}`} onClick={() => void run()}>
      {word}
    </button>
  );
}
