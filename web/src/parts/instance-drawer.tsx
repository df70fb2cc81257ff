// All details of one instance, beside the list that opened it, with the actions that change it.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { mayWrite } from '../account.ts';
import { command, deregister } from '../actions.ts';
import { day, duration, milliseconds } from '../format.ts';
import { instanceSamples, minuteOf, readInstance } from '../store.ts';
import type { Instance } from '../types.ts';
import { Confirm, Dialog } from './dialog.tsx';
import { Fact } from './fact.tsx';
import { Icon } from './icon.tsx';
import { StateBadge } from './state.tsx';

interface InstanceDrawerProps {
  readonly instance: Instance;
  readonly onClose: () => void;
}

export function InstanceDrawer({ instance, onClose }: InstanceDrawerProps) {
  const { id, server_id, reason, ejection, warnings, stderr } = instance;
  useEffect(() => readInstance(instance), [server_id]);
  return (
    <Dialog title={id} onClose={onClose} isDrawer>
      <div class="actions">
        <StateBadge instance={instance} />
        <span class="muted">{instance.transport}</span>
      </div>
      {reason && (
        <p class="callout bad">
          <Icon name="bad" />
          <span>{reason}</span>
        </p>
      )}
      {ejection && (
        <p class="callout warn">
          <Icon name="warn" />
          <span>
            {ejection.reason}. It gets no calls for {duration(Date.parse(ejection.until) - Date.now())}.
          </span>
        </p>
      )}
      {warnings.map((warning) => (
        <p key={warning} class="callout warn">
          <Icon name="warn" />
          <span>{warning}</span>
        </p>
      ))}
      {mayWrite.value && <Actions instance={instance} onGone={onClose} />}
      <Facts instance={instance} />
      {mayWrite.value && (
        <section>
          <h3>Last lines of standard error</h3>
          {stderr.length === 0 ? (
            <p class="muted">It wrote nothing, or it is not a program of this gateway.</p>
          ) : (
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by the keyboard
            <pre class="output" tabIndex={0}>
              {stderr.join('\n')}
            </pre>
          )}
        </section>
      )}
    </Dialog>
  );
}

function Actions({ instance, onGone }: { readonly instance: Instance; readonly onGone: () => void }) {
  const asks = useSignal(false);
  const isOff = instance.state === 'draining' || instance.state === 'stopped';
  return (
    <div class="actions">
      <button type="button" onClick={() => void command(instance, isOff ? 'resume' : 'drain')}>
        {isOff ? 'Resume' : 'Drain'}
      </button>
      <button type="button" onClick={() => void command(instance, 'restart')}>
        Restart
      </button>
      <button
        type="button"
        class="danger"
        onClick={() => {
          asks.value = true;
        }}
      >
        Deregister
      </button>
      {asks.value && (
        <Confirm
          title={`Deregister ${instance.id}?`}
          text="It gets no more calls, its running calls may finish, and it is no longer stored."
          action="Deregister"
          onConfirm={async () => {
            if (await deregister(instance)) onGone();
          }}
          onClose={() => {
            asks.value = false;
          }}
        />
      )}
    </div>
  );
}

function Facts({ instance }: { readonly instance: Instance }) {
  const { server_id, template_name, endpoint, command: program, args, working_dir, pid, node_id } = instance;
  const sample = instanceSamples.value.get(server_id);
  const { requests, failures } = minuteOf({ server: server_id });
  return (
    <dl class="facts">
      <Fact name="Template">{template_name}</Fact>
      {endpoint !== null && <Fact name="Endpoint">{endpoint}</Fact>}
      {program !== null && (
        <Fact name="Command">
          <code>{[program, ...args].join(' ')}</code>
        </Fact>
      )}
      {working_dir !== null && <Fact name="Folder">{working_dir}</Fact>}
      {pid !== null && <Fact name="Process">{pid}</Fact>}
      {node_id !== null && <Fact name="Node">{node_id}</Fact>}
      <Fact name="Calls">
        {requests} in the last minute, {failures} failed, {sample?.in_flight ?? instance.in_flight} in flight
      </Fact>
      <Fact name="Latency">{milliseconds(sample?.latency_ms)}</Fact>
      <Fact name="Failures in a row">{sample?.consecutive_failures ?? '–'}</Fact>
      <Fact name="Sessions">
        {instance.sessions} bound to it; {instance.own_processes} with a dedicated process
      </Fact>
      <Fact name="Restarts">{sample?.restarts ?? instance.restarts}</Fact>
      <Fact name="Weight">{instance.weight}</Fact>
      <Fact name="Registered">
        {day(instance.created_at)}, by {instance.source}
      </Fact>
      {instance.last_check !== null && <Fact name="Last check">{day(instance.last_check)}</Fact>}
    </dl>
  );
}
