// A button that copies a text and confirms it.

import { useState } from 'preact/hooks';
import { Icon } from './icon.tsx';
import { notify } from './notices.tsx';

interface CopyButtonProps {
  readonly label: string;
  readonly text: () => string;
}

const SAYS_SO_MS = 2_000;

export function CopyButton({ label, text }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      setCopied(true);
      setTimeout(() => setCopied(false), SAYS_SO_MS);
    } catch {
      // Pages without TLS have no clipboard, except on this machine.
      notify('The browser does not allow copying here: select the text.', 'bad');
    }
  };
  return (
    <button type="button" class="small" onClick={() => void copy()}>
      <Icon name={isCopied ? 'healthy' : 'copy'} />
      <span aria-live="polite">{isCopied ? 'Copied' : label}</span>
    </button>
  );
}
