// What the first script contains besides the start: parts that several pages use, so that a page is one file more.

import './cell.tsx';
import './copy.tsx';
import './detail-row.tsx';
import './dialog.tsx';
import './load.ts';
import './more.tsx';
import './result.tsx';
import './screen.ts';
import './search.tsx';
import './segments.tsx';
import './state.tsx';
import './template-select.tsx';
import './virtual-list.tsx';
import '../format.ts';
