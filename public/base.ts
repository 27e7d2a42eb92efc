/** The path below which these pages are; empty where there is none. */
export const BASE = document.documentElement.dataset.base ?? ''
/** The path below which the admin port answers. The assets are there, and in a host the list of its apps. */
export const HOME = document.documentElement.dataset.home ?? ''
/** Whether these pages are those of the host itself, and not those of an app. */
export const IS_HOST = document.documentElement.dataset.site === 'host'
