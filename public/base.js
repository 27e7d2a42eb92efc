/** The path below which these pages are; empty where there is none. */
export const BASE = document.documentElement.dataset.base ?? ''
/** The path below which the admin port is: of the assets, and of the list of apps. */
export const HOME = document.documentElement.dataset.home ?? ''
