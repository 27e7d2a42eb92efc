/**
 * The pages that the palette and the keys after `g` lead to.
 * `hint`: is searched, too; `needs`: the place is shown only to viewers with this power, or where the app or its host
 * has this
 */
export type Place = { label: string, href: string, icon: string, hint: string, key?: string,
  needs?: 'administer' | 'fleet' | 'jobs' | 'metrics' | 'allApps' }

export const PLACES: readonly Place[] = Object.freeze([{ key: 'o', label: 'Overview', href: '/', icon: 'heart-pulse',
  hint: 'health, workers, charts' }, { key: 'f', label: 'Fleet', href: '/fleet', icon: 'monitor',
  hint: 'hosts, rollout', needs: 'fleet' }, { key: 'd', label: 'Deploys', href: '/deploys', icon: 'rocket',
  hint: 'rollouts, releases' }, { key: 'h', label: 'History', href: '/history', icon: 'database', hint: 'events' }, {
  label: 'History of all hosts',
  href: '/history?member=*',
  icon: 'database',
  hint: 'events of the fleet',
  needs: 'fleet'
}, { label: 'Crashes of all hosts', href: '/crashes?member=*', icon: 'circle-alert', hint: 'errors of the fleet',
  needs: 'fleet' }, { key: 'c', label: 'Crashes', href: '/crashes', icon: 'circle-alert', hint: 'errors' }, { key: 'l',
  label: 'Logs', href: '/logs', icon: 'terminal', hint: 'stdout, stderr' }, { label: 'Logs of all hosts',
  href: '/logs?member=*', icon: 'terminal', hint: 'stdout, stderr of the fleet', needs: 'fleet' }, { key: 'r',
  label: 'Routes', href: '/routes', icon: 'git-fork', hint: 'slow requests, latency, p99, error rate' }, {
  label: 'Metrics',
  href: '/app-metrics',
  icon: 'heart-pulse',
  hint: 'prom-client, counters, histograms of the app',
  needs: 'metrics'
}, { key: 'j', label: 'Jobs', href: '/jobs', icon: 'hourglass', hint: 'cron, runs, commands', needs: 'jobs' }, {
  key: 's',
  label: 'Settings',
  href: '/settings',
  icon: 'settings-2',
  hint: 'options, configuration'
}, { label: 'Profiling', href: '/profiles', icon: 'radio', hint: 'CPU profiles, busiest functions' }, { key: 'k',
  label: 'Checks', href: '/checks', icon: 'info', hint: 'doctor, problems of app and machine' }, { key: 't',
  label: 'Alerts', href: '/alerts', icon: 'bell',
  hint: 'webhooks, notifications, Slack, Discord, Teams, mail, deliveries' }, { label: 'Access', href: '/access',
  icon: 'key-round', hint: 'tokens', needs: 'administer' }, { key: 'm', label: 'Manual', href: '/docs', icon: 'info',
  hint: 'docs, help' }])

/** The host itself has these pages; its apps have the others. */
export const HOST_PLACES: readonly Place[] = Object.freeze([{ key: 'a', label: 'Apps', href: '/', icon: 'package',
  hint: 'list, health' }, { key: 'f', label: 'Fleet', href: '/fleet', icon: 'monitor', hint: 'hosts, apps, rollouts',
  needs: 'fleet' }, { key: 'h', label: 'History of all apps', href: '/history', icon: 'database',
  hint: 'events, of the host too: apps added, tokens, sign-ins' }, { key: 'l', label: 'Logs of all apps', href: '/logs',
  icon: 'terminal', hint: 'stdout, stderr' }, { key: 't', label: 'Alerts', href: '/alerts', icon: 'bell',
  hint: 'webhooks, Slack, Discord, Teams, mail, deliveries', needs: 'allApps' }, { label: 'Access', href: '/access',
  icon: 'key-round', hint: 'tokens', needs: 'administer' }, { key: 'm', label: 'Manual', href: '/docs', icon: 'info',
  hint: 'docs, help' }])
