import { render } from 'preact';
import { App } from './app';
import { setTheme, theme } from './lib/dom';
import { followAddress } from './lib/route';
import { takeToken } from './lib/session';
import './style.css';

takeToken();
followAddress();
setTheme(theme.peek());
const root = document.getElementById('app');
if (root) render(<App />, root);
