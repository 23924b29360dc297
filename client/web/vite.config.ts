import { defineConfig } from 'vite';

export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    // Everything is a file with a hash in its name: the Content-Security-Policy knows no data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
