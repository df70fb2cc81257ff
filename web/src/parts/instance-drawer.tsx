// All details of one instance, beside the list that opened it, with the actions that change it.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { mayWrite } from '../account.ts';
import { command, deregister } from '../actions.ts';
import { day, duration, milliseconds } from '../format.ts';
import { href } from '../router.ts';
import { gatewayNow, instanceSamples, minuteOf, readInstance } from '../store.ts';
import type { Instance } from '../types.ts';
import { DetailRow } from './detail-row.tsx';
import { Confirm, Dialog } from './dialog.tsx';
import { Icon } from './icon.tsx';
import { AccountsLink, StateBadge, waitsForAccount } from './state.tsx';

interface InstanceDrawerProps {
  readonly instance: Instance;
  readonly onClose: () => void;
}

export function InstanceDrawer({ instance, onClose }: InstanceDrawerProps) {
  const { id, server_id, reason, ejection, warnings, stderr } = instance;
  const tone = waitsForAccount(instance) ? 'warn' : 'bad';
  useEffect(() => readInstance(instance), [server_id]);
  return (
    <Dialog title={id} onClose={onClose} isDrawer>
      <div class="actions">
        <StateBadge instance={instance} />
        <span class="muted">{instance.transport}</span>
      </div>
      {reason && (
        <p class={`callout ${tone}`}>
          <Icon name={tone} />
          <span>
            {reason} <AccountsLink instance={instance} />
          </span>
        </p>
      )}
      {ejection && (
        <p class="callout warn">
          <Icon name="warn" />
          <span>
            {ejection.reason}. No calls for {duration(Date.parse(ejection.until) - gatewayNow())}.
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
      <InstanceDetails instance={instance} />
      {mayWrite.value && (
        <section>
          <h3>Last lines of standard error</h3>
          {stderr.length === 0 ? (
            <p class="muted">Nothing was written, or this gateway does not run the program.</p>
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
      {(instance.endpoint ?? (instance.container ? null : instance.command)) && (
        <a
          class="button"
          href={href('register', { template: instance.template_name, instance: instance.id })}
        >
          Edit
        </a>
      )}
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
          text="Running calls finish, and it is removed from the registry."
          action="Deregister"
          run={() => deregister(instance)}
          done={`${instance.id} is deregistered.`}
          onDone={(isDone) => isDone && onGone()}
          onClose={() => {
            asks.value = false;
          }}
        />
      )}
    </div>
  );
}

function InstanceDetails({ instance }: { readonly instance: Instance }) {
  const {
    server_id,
    template_name,
    endpoint,
    command: program,
    args,
    working_dir,
    era,
    pid,
    node_id,
    running_on,
  } = instance;
  const sample = instanceSamples.value.get(server_id);
  const { requests, failures } = minuteOf({ server: server_id });
  return (
    <dl class="details">
      <DetailRow name="Template">{template_name}</DetailRow>
      {endpoint !== null && <DetailRow name="Endpoint">{endpoint}</DetailRow>}
      {program !== null && (
        <DetailRow name="Command">
          <code>{[program, ...args].join(' ')}</code>
        </DetailRow>
      )}
      {working_dir !== null && <DetailRow name="Working directory">{working_dir}</DetailRow>}
      {era !== undefined && <DetailRow name="Protocol era">{era}, as registered</DetailRow>}
      {pid !== null && <DetailRow name="Process">{pid}</DetailRow>}
      {node_id !== null && <DetailRow name="Node">{node_id}</DetailRow>}
      {typeof running_on === 'string' && <DetailRow name="Runs on">{running_on}</DetailRow>}
      <DetailRow name="Calls">
        {requests} in the last minute, {failures} failed, {sample?.in_flight ?? instance.in_flight} in flight
      </DetailRow>
      <DetailRow name="Latency">{milliseconds(sample?.latency_ms)}</DetailRow>
      <DetailRow name="Consecutive failures">{sample?.consecutive_failures ?? '–'}</DetailRow>
      <DetailRow name="Sessions">
        {instance.sessions} bound to it; {instance.own_processes} with a dedicated process
      </DetailRow>
      <DetailRow name="Restarts">{sample?.restarts ?? instance.restarts}</DetailRow>
      <DetailRow name="Weight">{instance.weight}</DetailRow>
      <DetailRow name="Registered">
        {day(instance.created_at)}, by {instance.source}
      </DetailRow>
      {instance.last_check !== null && <DetailRow name="Last check">{day(instance.last_check)}</DetailRow>}
    </dl>
  );
}
