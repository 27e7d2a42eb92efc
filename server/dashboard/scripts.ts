/** Runs in every page that has scripts, before all others. */
export const FIRST_SCRIPT = 'live.js'
/** Each of these has the modules of public/ that it imports, as far as the first has not brought them. */
export const PAGE_SCRIPTS: readonly string[] = Object.freeze(['charts.js', 'worker.js', 'history.js', 'logs.js',
  'picks.js', 'access.js', 'settings.js', 'sign-in.js', 'palette.js', 'commands.js', 'notifications.js',
  'alert-body.js'])
/** Runs in a thread of its own, beside those of the page. */
export const THREAD = 'log-matcher.js'
/** No modules: what is to run before a page is drawn, and the packages that pages use. */
export const CLASSIC_SCRIPTS: readonly string[] = Object.freeze(['early.js', 'libraries.js'])
