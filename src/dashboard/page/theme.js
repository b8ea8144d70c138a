/* Before anything is drawn: dark or light, if this browser was told. */
(() => {
  try {
    const theme = localStorage.getItem('procession.theme');
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  } catch {
    // Without a store the system's choice stands.
  }
})();
