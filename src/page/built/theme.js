/* Before anything is drawn: dark or light, as this browser was told, or else as the system has it. */
(() => {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const told = () => {
    try {
      return localStorage.getItem('procession.theme');
    } catch {
      return null; // without a store the system's choice stands
    }
  };
  const apply = () => {
    const theme = told();
    const isDark = theme === 'dark' || (theme !== 'light' && system.matches);
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
  };
  system.addEventListener('change', () => {
    apply();
    dispatchEvent(new Event('themed'));
  });
  apply();
})();
